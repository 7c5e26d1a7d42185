// SPDX-License-Identifier: Apache-2.0
// The bell of a rank is a futex word in shared memory. The rank's threads sleep on it, and every
// process of the host may ring it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"
#include "base/futex.hpp"

namespace horo {

/// Kinds of threads that sleep on a bell. The values are the bits that a sleeper gives to the
/// futex, so that a ring can choose which kind it wakes.
enum class Sleeper : std::uint32_t {
  caller = 1,          ///< A user's thread inside a wait.
  runtime_thread = 2,  ///< A thread of the runtime.
};

/// A bell filled with zeros has not been rung. Thread: any, in any process.
struct Bell {
  futex::Word rings;                           ///< Counts the rings.
  std::atomic<std::uint32_t> callers;          ///< Callers' threads that sleep or are about to.
  std::atomic<std::uint32_t> runtime_threads;  ///< The same for threads of the runtime.

  /// Wakes one sleeper, preferably a caller's thread. Makes no system call if there is no sleeper.
  void ring() {
    rings.fetch_add(1, std::memory_order_seq_cst);
    if (callers.load(std::memory_order_seq_cst) != 0) {
      futex::wake(rings, 1, static_cast<std::uint32_t>(Sleeper::caller));
    } else if (runtime_threads.load(std::memory_order_seq_cst) != 0) {
      futex::wake(rings, 1, static_cast<std::uint32_t>(Sleeper::runtime_thread));
    }
  }

  /// Wakes all sleepers.
  void ring_all() {
    rings.fetch_add(1, std::memory_order_seq_cst);
    futex::wake(rings);
  }
};

/// Registers the calling thread as a sleeper while this object exists. Between the constructor and
/// sleep() the thread must check its condition again: either that check sees a change that was
/// published before a ring, or the ring ends the sleep.
class BellSleeper {
 public:
  BellSleeper(Bell& bell, Sleeper who)
      : bell_(bell),
        who_(who),
        registered_(who == Sleeper::caller ? bell.callers : bell.runtime_threads) {
    registered_.fetch_add(1, std::memory_order_seq_cst);
    seen_ = bell_.rings.load(std::memory_order_seq_cst);
  }

  ~BellSleeper() { registered_.fetch_sub(1, std::memory_order_seq_cst); }

  BellSleeper(const BellSleeper&) = delete;
  BellSleeper& operator=(const BellSleeper&) = delete;

  /// Blocks: until a ring after the constructor, a signal, or for `limit`.
  void sleep(Duration limit) {
    futex::wait(bell_.rings, seen_, limit, static_cast<std::uint32_t>(who_));
  }

 private:
  Bell& bell_;
  const Sleeper who_;
  std::atomic<std::uint32_t>& registered_;
  std::uint32_t seen_ = 0;
};

}  // namespace horo
