// SPDX-License-Identifier: Apache-2.0
// Time as a parameter, so that tests can control it.
#pragma once

#include <chrono>
#include <ctime>

namespace horo {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// Source of monotonic time. Thread: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

/// CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }

  /// The only instance; it has no state.
  static const SteadyClock& instance() {
    static const SteadyClock clock;
    return clock;
  }
};

/// CLOCK_MONOTONIC at the kernel's last tick, 1 to 10 ms ago. Costs a quarter of an exact clock.
/// Thread: any.
inline TimePoint coarse_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return TimePoint(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

/// A clock that moves only when it is told to. Thread: owner.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }

  void advance(Duration d) { now_ += d; }

 private:
  TimePoint now_{};
};

}  // namespace horo
