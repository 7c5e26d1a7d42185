// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <thread>

#include "base/mutex.hpp"
#include "tests/spanning/run_clock.hpp"

namespace horo::spanning {

/// Ends the process with the stacks of all threads when a run takes too long, by RunClock, and
/// notices that the process was stopped for a while. Thread: any; one run at a time.
class Watchdog {
 public:
  Watchdog();
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void begin(std::uint64_t seed);

  /// True when the process was stopped since begin().
  bool end();

 private:
  void watch();

  Mutex mutex_;
  std::condition_variable changed_;
  bool ending_ HORO_GUARDED_BY(mutex_) = false;
  bool running_ HORO_GUARDED_BY(mutex_) = false;
  bool stopped_ HORO_GUARDED_BY(mutex_) = false;
  std::uint64_t seed_ HORO_GUARDED_BY(mutex_) = 0;
  RunClock clock_ HORO_GUARDED_BY(mutex_);  ///< Without the time that the process was stopped.
  std::thread thread_;
};

}  // namespace horo::spanning
