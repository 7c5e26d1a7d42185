// SPDX-License-Identifier: Apache-2.0
// Which thread of a rank drives its progress.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.hpp"
#include "base/futex.hpp"
#include "base/mutex.hpp"
#include "base/race_point.hpp"
#include "runtime/engine/operations/operation.hpp"
#include "runtime/host/waker.hpp"
#include "runtime/session/core_spread.hpp"

namespace horo::runtime {

/// Owns the right to drive this rank: to agree, to run entries and to complete operations. One
/// thread at a time holds it, and no thread waits while it holds it, except for the peers.
///
///     free --try_take--> held --give_back--> free
///                        held --take--> wanted --give_back--> handed --take returns--> held
///
/// A holder that finds the token wanted gives it back between two steps, and goes on afterwards.
///
/// Callers that wait for an operation and cannot have the token apply for it. The runtime's own
/// thread hands it to the last of them, since a caller that waits drives best itself.
class ProgressToken {
 public:
  /// Both outlive this.
  ProgressToken(Waker& waker, CoreSpread& spread) : waker_(waker), spread_(spread) {}

  ProgressToken(const ProgressToken&) = delete;
  ProgressToken& operator=(const ProgressToken&) = delete;

  // -- Thread: any ------------------------------------------------------------------------------

  bool try_take();

  /// Blocks: until the holder has given it back. One thread at a time.
  void take() HORO_REQUIRES(takers());

  bool is_free() const { return state_.load(std::memory_order_seq_cst) == kFree; }

  /// A thread waits in take().
  bool is_wanted(std::memory_order order = std::memory_order_relaxed) const {
    return state_.load(order) == kWanted;
  }

  /// Held by a thread from before take() until after give_back().
  Mutex& takers() HORO_RETURNS(takers_) { return takers_; }

  // -- Thread: the holder -----------------------------------------------------------------------

  /// True when it is free now: the caller must then look whether any thread of the rank is needed.
  /// False when it went to the thread in take().
  bool give_back();

  // -- Applicants. Thread: a caller that waits for `operation` ----------------------------------

  /// The holder may hand the token over from now on, until end_application().
  void apply(Operation& operation) { applicant_.store(&operation, std::memory_order_seq_cst); }

  /// Ends the application. True when the token was handed over, to this caller or an earlier one:
  /// the caller takes it, even if its operation is done, because nobody else drives the rank.
  bool end_application(Operation& operation);

  /// Puts the caller to sleep until the operation is done, the token is handed over, or the time
  /// has passed that `prepare()` returns just before; not at all when the token is free. False when
  /// it did not sleep.
  template <typename Prepare>
  bool sleep_as_applicant(Operation& operation, Prepare prepare) {
    // The thread registers and then looks at the token; the holder frees the token and then looks
    // for registered threads. One of the two sees the other.
    sleeping_.fetch_add(1, std::memory_order_seq_cst);
    waker_.add_waiter();
    waker_.need_own_thread();
    const bool sleeps = !is_free();
    race_point();
    if (sleeps) operation.sleep(prepare());
    waker_.end_need();
    waker_.remove_waiter();
    sleeping_.fetch_sub(1, std::memory_order_seq_cst);
    return sleeps;
  }

  // -- Applicants. Thread: any ------------------------------------------------------------------

  bool has_applicant() const { return applicant_.load(std::memory_order_relaxed) != nullptr; }

  bool has_sleeping_applicant() const { return sleeping_.load(std::memory_order_seq_cst) != 0; }

  /// Wakes the last applicant, which takes the token. Thread: the runtime's own, after give_back().
  void hand_over();

  /// An applicant has been woken and has not ended its application yet.
  bool is_handed_over() const { return handed_over_.load(std::memory_order_seq_cst); }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kWanted = 2;  ///< Held, and a thread waits in take().
  static constexpr std::uint32_t kHanded = 3;  ///< That thread's, which has not woken up yet.

  bool compare_exchange(std::uint32_t expected, std::uint32_t state) {
    return state_.compare_exchange_strong(expected, state, std::memory_order_seq_cst);
  }

  void note_holder();

  Waker& waker_;
  CoreSpread& spread_;
  futex::Word state_{kFree};
  std::atomic<Operation*> applicant_{nullptr};
  std::atomic<bool> handed_over_{false};
  std::atomic<std::uint32_t> sleeping_{0};
  Mutex takers_;
};

}  // namespace horo::runtime
