// SPDX-License-Identifier: Apache-2.0
// Sleep and wake-up of the ranks of one host.
//
// A rank that publishes news first stores them (seq_cst) and then asks here which peers sleep. A
// thread that goes to sleep first says so here (seq_cst) and then looks for news once more. In the
// single total order of these operations the publisher sees the sleeper, or the sleeper sees the
// news. Of all publishers that see the same sleeper only the first one rings: it sets the sleeper's
// word `called`, which the sleeper clears before it looks. docs/design/board.md has the protocol.
#pragma once

#include <cstdint>

#include "base/bell.hpp"
#include "base/board_header.hpp"
#include "base/clock.hpp"
#include "base/cpu/cpu.hpp"
#include "base/race_point.hpp"
#include "base/strong.hpp"
#include "runtime/host/host_layout.hpp"

namespace horo::runtime {

/// Owns this rank's words in shared memory that say how the rank is driven and what its sleepers
/// wait for: nothing else writes them, and nothing else sleeps on or rings a bell of the board.
class Waker {
 public:
  Waker() = default;

  /// The memory outlives this.
  Waker(const BoardView& board, HostBody& body, HostRank* ranks, LocalRank me)
      : board_(board), body_(&body), ranks_(ranks), me_(me) {}

  // -- How this rank is driven. Thread: the holder of the progress token -------------------------

  /// The calling thread looks for news by itself: peers need not wake it.
  void say_awake() { say(drive::kAwake); }

  /// No thread drives the rank from now on: peers wake its own thread.
  void say_undriven() {
    // A peer that reads the state behind it reads this, too.
    mine().called.store(0, std::memory_order_relaxed);
    say(drive::kNobody);
  }

  /// Puts the driver to sleep, `inside` an entry or not. `look` searches for news once the sleep is
  /// announced, and returns how long the thread may sleep; zero: not at all. False when it did not
  /// sleep. Blocks: until a ring, a signal, or for that long.
  template <typename Look>
  bool sleep_as_driver(Sleeper who, bool inside, Look look) {
    mine().interest.store(interest::kEntries | (inside ? interest::kChunks : 0),
                          std::memory_order_seq_cst);
    if (inside) body_->chunk_sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (who == Sleeper::caller) add_waiter();
    const bool slept = sleep(who, [&]() -> Duration {
      say(drive::kAsleep);
      // `look` goes through all backends; those of modules may read their state with acquire loads,
      // which an aarch64 may do before the store above.
      fence_after_seq_cst_store();
      return look();
    });
    say(drive::kAwake);
    if (who == Sleeper::caller) remove_waiter();
    if (inside) body_->chunk_sleepers.fetch_sub(1, std::memory_order_seq_cst);
    return slept;
  }

  // -- Other threads of this rank. Thread: any --------------------------------------------------

  /// The same for a thread that does not drive the rank.
  template <typename Look>
  bool sleep(Sleeper who, Look look) {
    BellSleeper sleeper(board_->slot(me_).bell, who);
    expect_call();
    const Duration limit = look();
    if (limit <= Duration::zero()) return false;
    race_point();
    sleeper.sleep(limit);
    return true;
  }

  /// A caller sleeps until an operation is done, or a callback is due: until remove_waiter() the
  /// host's ranks put tensors into entries as soon as these are complete.
  void add_waiter() { body_->waiters.fetch_add(1, std::memory_order_seq_cst); }

  void remove_waiter() { body_->waiters.fetch_sub(1, std::memory_order_seq_cst); }

  bool anyone_waits() const { return body_->waiters.load(std::memory_order_seq_cst) != 0; }

  /// From now on, until end_need(), a peer that publishes an entry wakes this rank's own thread
  /// where nobody drives the rank, although no peer needs anything of it. The caller looks at the
  /// log afterwards, or sees that a thread drives the rank: entries published before are its own
  /// concern.
  void need_own_thread() { mine().own_thread_needs.fetch_add(1, std::memory_order_seq_cst); }

  void end_need() { mine().own_thread_needs.fetch_sub(1, std::memory_order_seq_cst); }

  /// Some thread of this rank has called need_own_thread().
  bool needs_own_thread() const { return needs_own_thread(me_); }

  /// Has this rank's threads look again.
  void ring_own() { ring(me_); }

  /// The same, unless its driver is awake and does so anyway.
  void wake_own() {
    if (state_of(me_) != drive::kAwake) ring_own();
  }

  /// Wakes all threads of this rank.
  void ring_own_threads() { board_->slot(me_).bell.ring_all(); }

  // -- Ranks of this host. Thread: any. No system call when nobody sleeps -----------------------

  void ring(LocalRank r) { board_->slot(r).bell.ring(); }

  /// Rings a rank that was seen asleep or undriven after the news were stored, unless another rank
  /// has done so, or is about to, since that rank went to sleep: then it wakes and looks anyway.
  /// True when this call rang.
  bool call(LocalRank r) {
    auto& called = ranks_[r.index()].called;
    // The look comes first because ranks that poll ask again and again.
    if (called.load(std::memory_order_seq_cst) != 0) return false;
    if (called.exchange(1, std::memory_order_seq_cst) != 0) return false;
    race_point();
    ring(r);
    return true;
  }

  /// Wakes all threads of all ranks, with a system call for each rank.
  void ring_all() { horo::ring_all(board_); }

  /// Wakes a rank whose driver sleeps for any of `what`, bits of `interest`. A rank that nobody
  /// drives is woken for entries. True when this call rang.
  bool wake(LocalRank r, std::uint32_t what) { return wake_in(state_of(r), r, what); }

  /// The same, but a rank that nobody drives is woken only if `runs_soon()`.
  template <typename RunsSoon>
  bool wake(LocalRank r, std::uint32_t what, RunsSoon runs_soon) {
    const auto state = state_of(r);
    race_point();
    if (state == drive::kNobody && !runs_soon()) return false;
    return wake_in(state, r, what);
  }

  /// A thread of `r` has called need_own_thread().
  bool needs_own_thread(LocalRank r) const {
    return ranks_[r.index()].own_thread_needs.load(std::memory_order_seq_cst) != 0;
  }

  bool is_undriven(LocalRank r) const { return state_of(r) == drive::kNobody; }

  /// Some rank's driver sleeps inside an entry.
  bool any_sleeps_inside() const {
    return body_->chunk_sleepers.load(std::memory_order_seq_cst) != 0;
  }

  /// The driver of `r` does; whatever it wrote before is visible.
  bool sleeps_inside(LocalRank r) const {
    return state_of(r) == drive::kAsleep &&
           (ranks_[r.index()].interest.load(std::memory_order_seq_cst) & interest::kChunks) != 0;
  }

 private:
  HostRank& mine() { return ranks_[me_.index()]; }

  void say(std::uint32_t state) { mine().drive.store(state, std::memory_order_seq_cst); }

  bool wake_in(std::uint32_t state, LocalRank r, std::uint32_t what) {
    if (state == drive::kAwake) return false;
    const auto wanted = state == drive::kNobody
                            ? interest::kEntries
                            : ranks_[r.index()].interest.load(std::memory_order_seq_cst);
    return (wanted & what) != 0 && call(r);
  }

  /// From now on a peer with news has to ring. Behind the registration of a sleeper, so that the
  /// ring of a peer that sets the word again ends the sleep.
  void expect_call() { mine().called.store(0, std::memory_order_seq_cst); }

  std::uint32_t state_of(LocalRank r) const {
    return ranks_[r.index()].drive.load(std::memory_order_seq_cst);
  }

  BoardView board_;
  HostBody* body_ = nullptr;
  HostRank* ranks_ = nullptr;
  LocalRank me_;
};

}  // namespace horo::runtime
