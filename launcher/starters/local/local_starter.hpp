// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// Begins on this machine: horo-agent as a child, spoken to over a socket pair. The program is
/// HORO_AGENT_PATH, or horo-agent beside this process's own binary.
std::unique_ptr<Starter> make_local_starter(Loop& loop);

}  // namespace horo::launcher
