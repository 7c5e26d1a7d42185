// SPDX-License-Identifier: Apache-2.0
// The core on which the runtime's own thread of a rank runs, by the knob thread.affinity.
#pragma once

#include <optional>
#include <pthread.h>
#include <string_view>

#include "base/result.hpp"
#include "base/strong.hpp"

namespace horo::runtime {

/// The core for local rank `me` of `local_size`; nothing if `list`, a number list, is empty.
/// Fails: invalid_argument (fewer numbers than ranks, or a core that this process cannot use).
Result<std::optional<int>> core_of(std::string_view list, LocalRank me, int local_size);

/// Moves a thread of this process to this core. False: the system refuses.
bool move_to_core(pthread_t thread, int core);

}  // namespace horo::runtime
