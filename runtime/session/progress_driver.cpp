// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/progress_driver.hpp"

#include <algorithm>
#include <pthread.h>
#include <sched.h>

#include "base/cpu/cpu.hpp"
#include "base/log.hpp"
#include "base/race_point.hpp"
#include "base/signals_blocked.hpp"
#include "runtime/engine/operations/recording.hpp"
#include "runtime/session/thread_core.hpp"
#include "runtime/session/time_slice.hpp"

namespace horo::runtime {

namespace {

constexpr int kLooksPerClock = 32;  // Looks between two readings of the clock while spinning.
constexpr Duration kQuietSpin = std::chrono::microseconds(10);  // Before others get the core.

// After a turn of another thread that takes a whole time slice it is better to sleep than to yield.
constexpr Duration kAfterSlowTurn = std::chrono::milliseconds(50);

constexpr Duration kStepOfDrain = std::chrono::milliseconds(100);
constexpr Duration kLookDuringLoss = std::chrono::milliseconds(20);
constexpr Duration kPollBackend = std::chrono::microseconds(50);

// Callers that wait look for stalls first; the runtime's own thread is this much later.
constexpr Duration kCallersLook = std::chrono::milliseconds(100);

const Clock& steady() {
  return SteadyClock::instance();
}

}  // namespace

void ProgressDriver::start(const SpinPolicy& spin, std::optional<int> core) {
  spin_ = spin;
  if (spin_.crowded()) spread_.stay();
  background_ = start_quiet_thread([this] { run(); });
  if (core && !move_to_core(background_.native_handle(), *core))
    log::warn("runtime", "core {} is not available any more", *core);
}

void ProgressDriver::end_thread() {
  host_.waker().ring_own_threads();
  background_.join();
}

bool ProgressDriver::needs_driver() const {
  if (sets_.is_needed()) return true;
  return host_.waker().needs_own_thread() && (sets_.has_news() || sets_.can_cut());
}

void ProgressDriver::return_token() {
  // A peer that published while the driver was awake did not ring, and a caller that waits here
  // found the token taken.
  if (token_.give_back() && (needs_driver() || token_.has_sleeping_applicant()))
    host_.waker().ring_own();
  race_point();
  // A tensor that is ready but finds no room gets into the log by nobody else. Now a thread of this
  // rank that begins to wait for it either is seen to find no driver, or has made it ready itself.
  count_wakes(sets_.wake_laggards(SetBells::For::room));
}

Duration ProgressDriver::longest_sleep(bool inside, const Deadline& deadline) const {
  auto limit = deadline.left(steady().now());
  limit = std::min({limit, sets_.cycle_time(), stalls_.until_due(steady().now())});
  // While the ranks handle a loss, a peer may end without ringing.
  if (sets_.loss().is_poisoned() || sets_.loss().broken()) limit = std::min(limit, kLookDuringLoss);
  // Backends without completion events are polled until they finish.
  if (inside && sets_.polls()) limit = std::min(limit, kPollBackend);
  return limit;
}

void ProgressDriver::sleep(Sleeper who, const Deadline& deadline) {
  const bool inside = sets_.active();
  const bool slept = host_.waker().sleep_as_driver(who, inside, [&]() -> Duration {
    const auto limit = longest_sleep(inside, deadline);
    race_point();
    count_wakes(sets_.wake_laggards(SetBells::For::shares));
    const bool wanted = token_.is_wanted(std::memory_order_seq_cst);
    if (sets_.progress() || wanted || limit <= Duration::zero()) return Duration::zero();
    count_sleep();
    return limit;
  });
  if (slept && who == Sleeper::caller) calls_.note_call();
}

void ProgressDriver::progress_or_sleep() {
  if (!sets_.progress()) sleep(Sleeper::caller, Deadline::in(steady(), kStepOfDrain));
}

Duration ProgressDriver::spin_time(Sleeper who, TimePoint now) const {
  if (who == Sleeper::runtime_thread) return spin_.of_runtime_thread();
  return spin_.of_caller(sets_.bytes_in_flight(), !slow_turns_.expired(now));
}

bool ProgressDriver::yield_core() {
  const auto before = steady().now();
  if (!slow_turns_.expired(before)) return false;
  sched_yield();
  if (steady().now() - before > spin_.slow_turn())
    slow_turns_ = Deadline::in(steady(), kAfterSlowTurn);
  return true;
}

bool ProgressDriver::goes_on(const Operation* operation, Until until) const {
  if (token_.is_wanted()) return false;
  if (operation != nullptr) return !operation->reached(until);
  return !stopping_.load(std::memory_order_relaxed) && !token_.has_applicant();
}

bool ProgressDriver::has_work() const {
  return sets_.active() || sets_.has_news() || sets_.cycle_time() != Duration::max();
}

void ProgressDriver::drive(const Operation* operation, const Deadline& deadline, Until until) {
  const bool caller = operation != nullptr;
  const auto who = caller ? Sleeper::caller : Sleeper::runtime_thread;
  TimePoint idle_since{};
  int looks = 0;
  while (goes_on(operation, until)) {
    if (sets_.progress()) {
      looks = 0;
      continue;
    }
    if (!caller && sets_.loss().lost()) return stalls_.write_pending();
    if (caller && spin_.yields() && spread_.shares_core() && yield_core()) {
      looks += kLooksPerClock;
    } else {
      cpu_pause();
      ++looks;
    }
    if (looks % kLooksPerClock != 0) continue;
    const auto now = steady().now();
    if (looks == kLooksPerClock) {
      idle_since = now;
      count_wakes(sets_.wake_laggards(SetBells::For::room));
    }
    if (deadline.expired(now)) return;
    if (caller) {
      spread_.look(now);
      if (host_.local_size() > 1 && !spin_.crowded()) take_short_turns();
    }
    if (now - idle_since < spin_time(who, now)) {
      // Where somebody has put two ranks on one core after all, the other one gets it.
      if (now - idle_since >= kQuietSpin && spread_.shares_core()) sched_yield();
      continue;
    }
    stalls_.report_due(now);
    if (!caller && !has_work()) return;
    sleep(who, deadline);
    looks = 0;
  }
}

void ProgressDriver::poke() {
  if (!token_.try_take()) return;
  for (int i = 0; i < 4 && sets_.progress(); ++i) {
  }
  // A rank that only polls never sleeps, where it would do this.
  count_wakes(sets_.wake_laggards(SetBells::For::shares));
  return_token();
}

void ProgressDriver::note_callbacks() {
  if (callbacks_.load(std::memory_order_seq_cst)) return;
  // Whoever sees that callbacks are in use finds the need announced.
  host_.waker().need_own_thread();
  if (callbacks_.exchange(true, std::memory_order_seq_cst)) host_.waker().end_need();
}

Status ProgressDriver::on_complete(Operation& operation, Operation::Callback callback, void* user) {
  auto& waker = host_.waker();
  waker.add_waiter();
  note_callbacks();
  const auto later = operation.on_complete(callback, user);
  if (!later || !*later) {
    waker.remove_waiter();
    if (!later) return Failure(later.error());
  } else if (sets_.has_ready() || sets_.has_news()) {
    waker.ring_own();
  }
  return {};
}

bool ProgressDriver::claim(Operation& operation, const Deadline& deadline, Until until) {
  if (token_.try_take()) return true;
  token_.apply(operation);
  const auto spins_until = steady().now() + spin_.of_token();
  bool taken = false;
  for (int looks = 1; !operation.reached(until); ++looks) {
    cpu_pause();
    taken = token_.try_take();
    if (taken || (looks % kLooksPerClock == 0 && steady().now() >= spins_until)) break;
  }
  if (!taken && !operation.reached(until)) {
    const bool slept = token_.sleep_as_applicant(operation, [&] {
      count_sleep();
      if (host_.local_size() > 1) take_short_turns();
      return deadline.left(steady().now());
    });
    if (slept) calls_.note_call();
  }
  const bool handed = token_.end_application(operation);
  return taken || (handed && token_.try_take());
}

bool ProgressDriver::wait(std::span<Operation* const> operations, const Deadline& deadline,
                          Until until) {
  std::size_t next = 0;
  const auto all_done = [&] {
    while (next < operations.size() && operations[next]->reached(until)) ++next;
    return next == operations.size();
  };
  const auto recorded = all_done() ? timeline::Waiting() : waiting_for(*operations[next]);
  CallNotes::Wait note(calls_);
  while (!all_done()) {
    note.note(*operations[next]);
    if (claim(*operations[next], deadline, until)) {
      do {
        note.note(*operations[next]);
        drive(operations[next], deadline, until);
      } while (!all_done() && !deadline.expired(steady().now()) && !token_.is_wanted());
      // With a deadline that has passed the thread has not slept, where it would do this.
      if (!all_done()) count_wakes(sets_.wake_laggards(SetBells::For::shares));
      return_token();
    }
    if (!all_done() && deadline.expired(steady().now())) break;
  }
  give_turns_back();
  return all_done();
}

void ProgressDriver::sleep_without_token() {
  host_.waker().sleep(Sleeper::runtime_thread, [&]() -> Duration {
    const bool free = token_.is_free();
    race_point();
    if (stopping_.load(std::memory_order_seq_cst)) return Duration::zero();
    // While another thread has the token there is nothing to do here: returning it rings. This
    // thread's own ring, as it returned the token, is over by now. One of the callers that found
    // the token taken here gets it; nobody else cuts what the others have made ready.
    if (!token_.is_handed_over() && free && needs_driver()) return Duration::zero();
    const auto limit = stalls_.until_due(steady().now());
    return limit == Duration::max() ? limit : limit + kCallersLook;
  });
}

void ProgressDriver::run() {
  pthread_setname_np(pthread_self(), "horo-progress");
  if (host_.local_size() > 1) take_short_turns();
  while (!stopping_.load(std::memory_order_seq_cst)) {
    if (token_.try_take()) {
      drive(nullptr, Deadline::never(), Until::done);
      return_token();
      token_.hand_over();
    }
    sleep_without_token();
  }
}

}  // namespace horo::runtime
