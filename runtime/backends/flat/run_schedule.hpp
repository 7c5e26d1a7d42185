// SPDX-License-Identifier: Apache-2.0
// Runs a schedule over a transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "runtime/backends/flat/schedule.hpp"
#include "runtime/backends/flat/schedule_memory.hpp"
#include "runtime/backends/flat/transport.hpp"

namespace horo::runtime {

struct ScheduleRun {
  std::uint64_t segment = 0;  ///< Counted through all buckets of the set.
  std::uint32_t worker = 0;
  ScheduleMemory memory = nullptr;  ///< schedule.memory bytes.
  std::function<void(const Combine&)> combine;
};

/// Posts the messages of all rounds in the order that the other ranks expect. If it fails, messages
/// that are on their way stay in `messages`. Blocks: until all messages have moved. Fails: as the
/// transport.
Status run_schedule(Transport& transport, const Schedule& plan, const ScheduleRun& run,
                    std::vector<std::unique_ptr<PendingMessage>>& messages);

}  // namespace horo::runtime
