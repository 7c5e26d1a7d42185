// SPDX-License-Identifier: Apache-2.0
// The time of a record: the processor's counter, which costs a third of what a clock does.
#pragma once

#include <cstdint>
#include <ctime>

#include "base/clock.hpp"
#include "timeline/record.hpp"

namespace horo::timeline {

/// Whether the kernel itself keeps time by the counter: then it is steady and the same on all
/// cores. Looked up once. Thread: any.
bool counts_by_processor();

/// Thread: any.
inline std::uint64_t ticks_now(bool by_processor) {
  if (by_processor) [[likely]]
    return __builtin_ia32_rdtsc();
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// How many of them pass in `d`, to a thousandth. Measured once, for 50 us. Thread: any.
std::uint64_t ticks_in(Duration d);

/// All three clocks, read within a microsecond where this process is not interrupted.
Anchor take_anchor();

}  // namespace horo::timeline
