// SPDX-License-Identifier: Apache-2.0
// Where this rank's callers are, for the stall reports of its peers.
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "runtime/engine/operations/operation.hpp"
#include "runtime/host/host_layout.hpp"

namespace horo::runtime {

/// Owns the rank's words `last_call` and `waits_for` in shared memory. Thread: any.
class CallNotes {
 public:
  /// `rank` outlives this.
  explicit CallNotes(HostRank& rank) : rank_(rank) {}

  /// Notes that a thread of the user's is inside libhoro. The time; callers that spin for a short
  /// time need not read the clock for it.
  TimePoint note_call() {
    const auto now = coarse_now();
    rank_.last_call.store(static_cast<std::uint64_t>(now.time_since_epoch().count()),
                          std::memory_order_relaxed);
    return now;
  }

  /// The wait of one caller. Thread: that caller's.
  class Wait {
   public:
    explicit Wait(CallNotes& notes) : word_(notes.rank_.waits_for) {}

    /// Takes the note back unless another caller has written a later one.
    ~Wait() {
      if (noted_ != 0 && word_.load(std::memory_order_relaxed) == noted_)
        word_.store(0, std::memory_order_relaxed);
    }

    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    void note(const Operation& operation) {
      noted_ = std::uint64_t{operation.set.value()} << 32U |
               (operation.tensor.value() + std::uint64_t{1});
      word_.store(noted_, std::memory_order_relaxed);
    }

   private:
    std::atomic<std::uint64_t>& word_;
    std::uint64_t noted_ = 0;
  };

 private:
  HostRank& rank_;
};

}  // namespace horo::runtime
