// SPDX-License-Identifier: Apache-2.0
// The time of a record: the processor's counter, which costs a third of a clock call.
#pragma once

#include <cstdint>
#include <ctime>

#include "base/clock.hpp"
#include "base/cpu/cpu.hpp"
#include "timeline/record/record.hpp"

namespace horo::timeline {

/// Whether the kernel uses the counter as its clock source. Then the counter is steady and equal on
/// all cores. Looked up once. Thread: any.
bool counts_by_processor();

/// Thread: any.
inline std::uint64_t ticks_now(bool by_processor) {
  if (by_processor) [[likely]]
    return cpu_ticks();
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// How many ticks pass in `d`, with an error of at most a thousandth. Where the processor does not
/// state the rate, it is measured once, for 50 us. Thread: any.
std::uint64_t ticks_in(Duration d);

/// The inverse.
Duration duration_of(std::uint64_t ticks);

/// Reads all three clocks, within a microsecond unless this process is interrupted.
Anchor take_anchor();

}  // namespace horo::timeline
