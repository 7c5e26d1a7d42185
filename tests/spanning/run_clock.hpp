// SPDX-License-Identifier: Apache-2.0
// Tells a run that hangs from one that is slow because other programs have the cores.
#pragma once

#include <unordered_map>

#include "base/clock.hpp"

namespace horo::spanning {

/// Measures how long the threads of this process were ready to run and had no core. Thread: owner.
class CoreWaits {
 public:
  /// Since the last call, summed over the threads that exist now. The first call counts from their
  /// start. Zero where the kernel does not say.
  Duration take();

 private:
  std::unordered_map<int, Duration> seen_;  ///< By thread.
};

/// Decides when a run has taken too long. Time counts only as far as no thread waited for a core: a
/// process of low priority can need minutes for what takes seconds. Thread: owner.
class RunClock {
 public:
  static constexpr Duration kMostCounted = std::chrono::minutes(5);
  /// The threads of a run that hangs still wake up now and then, and may wait for a core each time.
  static constexpr Duration kMostInAll = std::chrono::hours(1);

  void restart() { *this = {}; }

  void add(Duration passed, Duration waited_for_cores);

  bool expired() const { return counted_ >= kMostCounted || all_ >= kMostInAll; }

  Duration all() const { return all_; }

  Duration waited_for_cores() const { return waited_; }

 private:
  Duration counted_{};
  Duration all_{};
  Duration waited_{};
};

}  // namespace horo::spanning
