// SPDX-License-Identifier: Apache-2.0
// The values that may change while a job runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"

namespace horo::runtime {

/// No time of a tuning is longer: more makes no sense.
inline constexpr std::uint64_t kLongestTuningTime =
    Duration(std::chrono::hours(24)).count();  ///< Nanoseconds.

/// With this wake delay or a longer one, a submission wakes no thread for a full bucket either:
/// where every core computes, a runtime's thread that wakes takes one from its rank, and the caches
/// with it, and nothing is done any sooner. It is long enough to leave most steps of a training
/// alone.
inline constexpr std::uint64_t kLateWakeNs = 200'000'000;

/// Bytes that are worth one message more, unless the tuning says otherwise.
inline constexpr std::uint64_t kUsualSmallMessage = 64 << 10;

/// When tensors are put into log entries, how many share one, and how sums move between hosts.
struct Tuning {
  std::uint64_t fusion_threshold = 64 << 20;  ///< Most bytes of an entry that fuses tensors.
  std::uint64_t cycle_ns = 0;  ///< A ready tensor waits so long for others to fuse with; 0: not.
  /// Without a waiting caller, ready tensors are put into an entry after this time.
  std::uint64_t wake_delay_ns = 50'000;
  /// Between hosts, one message more costs as much time as this many bytes.
  std::uint64_t small_message = kUsualSmallMessage;

  friend bool operator==(const Tuning&, const Tuning&) = default;
};

/// Owns the tuning that this rank uses in one process set. Read by any thread; only the holder of
/// the progress token replaces it, when the rank reaches a log entry of kind `tuning`, so that all
/// ranks change it between the same two entries.
class AppliedTuning {
 public:
  explicit AppliedTuning(const Tuning& tuning) { apply(tuning); }

  std::uint64_t fusion_threshold() const { return load(fusion_threshold_); }

  std::uint64_t cycle_ns() const { return load(cycle_ns_); }

  std::uint64_t wake_delay_ns() const { return load(wake_delay_ns_); }

  std::uint64_t small_message() const { return load(small_message_); }

  Tuning value() const {
    return {.fusion_threshold = fusion_threshold(),
            .cycle_ns = cycle_ns(),
            .wake_delay_ns = wake_delay_ns(),
            .small_message = small_message()};
  }

  void apply(const Tuning& tuning) {
    fusion_threshold_.store(tuning.fusion_threshold, std::memory_order_relaxed);
    cycle_ns_.store(tuning.cycle_ns, std::memory_order_relaxed);
    wake_delay_ns_.store(tuning.wake_delay_ns, std::memory_order_relaxed);
    small_message_.store(tuning.small_message, std::memory_order_relaxed);
  }

 private:
  static std::uint64_t load(const std::atomic<std::uint64_t>& word) {
    return word.load(std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> fusion_threshold_{0};
  std::atomic<std::uint64_t> cycle_ns_{0};
  std::atomic<std::uint64_t> wake_delay_ns_{0};
  std::atomic<std::uint64_t> small_message_{0};
};

}  // namespace horo::runtime
