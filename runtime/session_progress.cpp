// SPDX-License-Identifier: Apache-2.0
// Who drives progress, and how it sleeps.
//
// The holder of the token says in its rank's `drive` word whether it is awake. A peer that
// publishes something wakes only ranks whose driver sleeps or that have none; every sleeper first
// announces itself and then looks once more, so one of the two always sees the other.
#include <pthread.h>
#include <sched.h>

#include "base/log.hpp"
#include "runtime/session.hpp"
#include "runtime/time_slice.hpp"

namespace horo::runtime {

namespace {

// With more ranks than cores a waiter offers its core to the peers, again and again: a third of
// what falling asleep and being woken takes. Where something else takes a whole time slice each
// time, sleeping is better for a while: who wakes up goes first.
constexpr Duration kCrowdedSpin = std::chrono::microseconds(40);
constexpr Duration kLongSlice = std::chrono::microseconds(500);
constexpr Duration kCrowdedOut = std::chrono::milliseconds(50);
constexpr int kLooksPerClock = 32;  // Looks between two readings of the clock while spinning.
constexpr Duration kBackgroundSpin = std::chrono::microseconds(3);
constexpr Duration kTokenSpin = std::chrono::microseconds(10);
constexpr Duration kQuietSpin = std::chrono::microseconds(10);  // Before others are let in.
constexpr Duration kLongestShare = std::chrono::milliseconds(1);
constexpr Duration kOthersTurn = std::chrono::milliseconds(100);
constexpr std::uint64_t kBytesPerNs = 4;  // What a peer moves at least.

const Clock& steady() {
  return SteadyClock::instance();
}

}  // namespace

bool Session::try_token() {
  if (token_.load(std::memory_order_relaxed)) return false;
  bool free = false;
  if (!token_.compare_exchange_strong(free, true, std::memory_order_seq_cst)) return false;
  host_->my_rank().drive.store(drive::kAwake, std::memory_order_seq_cst);
  spread_.note();
  return true;
}

void Session::take_token() {
  taker_.store(kTakerWaits, std::memory_order_seq_cst);
  if (token_.exchange(true, std::memory_order_seq_cst)) {
    // A driver reads the bell before it looks for takers and sleeps: it finds this one, or is rung.
    ring(host_->my_slot());
    while (taker_.load(std::memory_order_seq_cst) != kTakerHasIt)
      futex::wait(taker_, kTakerWaits, Duration::max());
  }
  taker_.store(kNoTaker, std::memory_order_seq_cst);
  host_->my_rank().drive.store(drive::kAwake, std::memory_order_seq_cst);
  spread_.note();
}

void Session::give_token_back() {
  return_token();
  ring(host_->my_slot());  // Who gave way goes on.
}

void Session::return_token() {
  do {
    if (taker_.load(std::memory_order_seq_cst) == kTakerWaits) {
      taker_.store(kTakerHasIt, std::memory_order_seq_cst);
      futex::wake(taker_);
      return;
    }
    host_->my_rank().drive.store(drive::kNobody, std::memory_order_seq_cst);
    token_.store(false, std::memory_order_seq_cst);
    // A taker announces itself and then tries the token: it finds it free, or is found here.
  } while (taker_.load(std::memory_order_seq_cst) == kTakerWaits &&
           !token_.exchange(true, std::memory_order_seq_cst));
  // Whoever published while we were awake did not ring; whoever waits here found the token taken.
  if (sets_.has_news() || local_waiters_.load(std::memory_order_seq_cst) != 0)
    ring(host_->my_slot());
}

TimePoint Session::note_call() {
  const auto now = coarse_now();
  host_->my_rank().last_call.store(static_cast<std::uint64_t>(now.time_since_epoch().count()),
                                   std::memory_order_relaxed);
  return now;
}

void Session::sleep_as_driver(std::uint32_t who, const Deadline& deadline) {
  auto& area = host_->my_rank();
  auto& slot = host_->my_slot();
  auto& body = host_->body();
  const bool inside = sets_.active();
  area.interest.store(interest::kEntries | (inside ? interest::kChunks : 0),
                      std::memory_order_seq_cst);
  if (inside) body.chunk_sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (who == kForeground) body.impatient.fetch_add(1, std::memory_order_seq_cst);
  auto& sleepers = who == kForeground ? slot.foreground_sleepers : slot.background_sleepers;
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  const auto seen = slot.bell.load(std::memory_order_seq_cst);
  area.drive.store(drive::kAsleep, std::memory_order_seq_cst);
  auto limit = deadline.left(steady().now());
  if (host_->params().cycle_ns != 0 && sets_.has_ready())
    limit = std::min(limit, Duration(host_->params().cycle_ns));
  limit = std::min(limit, stalls_.until_due(steady().now()));
  // While a loss is being settled a peer may end without a word to us.
  if (poison_of(host_->header()).cause != LossCause::none || sets_.broken())
    limit = std::min<Duration>(limit, std::chrono::milliseconds(20));
  // Who tells nobody when it can move on is looked at again and again.
  if (inside && sets_.polls()) limit = std::min<Duration>(limit, std::chrono::microseconds(50));
  wakes_.fetch_add(static_cast<std::uint64_t>(sets_.wake_laggards()), std::memory_order_relaxed);
  const bool wanted = taker_.load(std::memory_order_seq_cst) == kTakerWaits;
  if (!sets_.progress() && !wanted && limit > Duration::zero()) {
    sleeps_.fetch_add(1, std::memory_order_relaxed);
    futex::wait(slot.bell, seen, limit, who);
    if (who == kForeground) note_call();
  }
  area.drive.store(drive::kAwake, std::memory_order_seq_cst);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
  if (who == kForeground) body.impatient.fetch_sub(1, std::memory_order_seq_cst);
  if (inside) body.chunk_sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

Duration Session::patience(bool foreground) const {
  if (!foreground) return std::min(spin_, kBackgroundSpin);
  if (crowded_ && crowded_out_.expired(steady().now())) return kCrowdedSpin;
  if (!own_core_) return spin_;
  // Peers with cores of their own are at work on what is in flight and done with their shares soon:
  // to sleep and be woken takes as long as moving half a megabyte.
  const Duration shares(static_cast<Duration::rep>(sets_.bytes_in_flight() / kBytesPerNs));
  return spin_ + std::min(shares, kLongestShare);
}

bool Session::let_others_run() {
  const auto before = steady().now();
  if (!crowded_out_.expired(before)) return false;
  sched_yield();
  const auto after = steady().now();
  if (after - before > kLongSlice) crowded_out_ = Deadline::in(steady(), kCrowdedOut);
  return true;
}

void Session::look_for_stalls(TimePoint now) {
  if (stalls_.until_due(now) > Duration::zero()) return;
  stalls_.say();
  auto findings = stalls_.look(now);
  for (const auto& line : findings.lines) log::warn("stall", "{}", line);
  for (auto& question : findings.questions) hosts_->ask(std::move(question));
  record_stalls(findings.lines.size());
  if (findings.end.empty()) return;
  log::error("stall", "{}", findings.end);
  stalls_.end_job(findings);
}

void Session::drive(const Operation* operation, const Deadline& deadline) {
  const bool foreground = operation != nullptr;
  TimePoint idle_since{};
  int looks = 0;
  const auto goes_on = [&] {
    if (taker_.load(std::memory_order_relaxed) == kTakerWaits) return false;
    if (foreground) return !operation->done();
    return !stopping_.load(std::memory_order_relaxed) &&
           applicant_.load(std::memory_order_relaxed) == nullptr;
  };
  while (goes_on()) {
    if (sets_.progress()) {
      looks = 0;
      continue;
    }
    if (!foreground && sets_.lost()) {
      stalls_.say();
      return;
    }
    if (foreground && crowded_ && spread_.shares_core() && let_others_run()) {
      looks += kLooksPerClock - 1;
    } else {
      __builtin_ia32_pause();
    }
    if (++looks % kLooksPerClock != 0) continue;
    const auto now = steady().now();
    if (looks == kLooksPerClock) idle_since = now;
    if (deadline.expired(now)) return;
    if (foreground) {
      spread_.look(now);
      if (host_->local_size() > 1) take_short_turns();
    }
    if (now - idle_since < patience(foreground)) {
      // Where somebody has put two ranks on one core after all, the other is let in.
      if (now - idle_since >= kQuietSpin && spread_.shares_core()) sched_yield();
      continue;
    }
    look_for_stalls(now);
    const bool lingering = host_->params().cycle_ns != 0 && sets_.has_ready();
    if (!foreground && !sets_.active() && !lingering && !sets_.has_news()) return;
    sleep_as_driver(foreground ? kForeground : kBackground, deadline);
    looks = 0;
  }
}

void Session::poke() {
  if (!try_token()) return;
  for (int i = 0; i < 4 && sets_.progress(); ++i) {
  }
  return_token();
}

Status Session::on_complete(Operation& operation, Operation::Callback callback, void* user) {
  host_->body().impatient.fetch_add(1, std::memory_order_seq_cst);
  callbacks_.store(1, std::memory_order_seq_cst);
  const auto later = operation.on_complete(callback, user);
  if (!later || !*later) {
    host_->body().impatient.fetch_sub(1, std::memory_order_seq_cst);
    if (!later) return Failure(later.error());
  } else if (sets_.has_ready() || sets_.has_news()) {
    ring(host_->my_slot());
  }
  return {};
}

bool Session::claim_token(Operation& operation, const Deadline& deadline) {
  if (try_token()) return true;
  applicant_.store(&operation, std::memory_order_seq_cst);
  const auto until = steady().now() + std::min(spin_, kTokenSpin);
  bool taken = false;
  for (int looks = 1; !operation.done(); ++looks) {
    __builtin_ia32_pause();
    taken = try_token();
    if (taken || (looks % kLooksPerClock == 0 && steady().now() >= until)) break;
  }
  if (!taken && !operation.done()) {
    // Announce, look again, sleep: the holder returns the token first and then looks for waiters.
    local_waiters_.fetch_add(1, std::memory_order_seq_cst);
    host_->body().impatient.fetch_add(1, std::memory_order_seq_cst);
    if (token_.load(std::memory_order_seq_cst)) {
      sleeps_.fetch_add(1, std::memory_order_relaxed);
      if (host_->local_size() > 1) take_short_turns();
      operation.sleep(deadline.left(steady().now()));
      note_call();
    }
    host_->body().impatient.fetch_sub(1, std::memory_order_seq_cst);
    local_waiters_.fetch_sub(1, std::memory_order_seq_cst);
  }
  auto* mine = &operation;
  applicant_.compare_exchange_strong(mine, nullptr, std::memory_order_seq_cst);
  // Whoever was handed the token takes it, done or not: until then nobody moves anything.
  const bool handed = handed_over_.exchange(false, std::memory_order_seq_cst);
  return taken || (handed && try_token());
}

void Session::hand_over() {
  auto* const operation = applicant_.load(std::memory_order_seq_cst);
  if (operation == nullptr) return;
  handed_over_.store(true, std::memory_order_seq_cst);
  auto* expected = operation;
  if (applicant_.compare_exchange_strong(expected, nullptr, std::memory_order_seq_cst)) {
    operation->nudge();
  } else {
    handed_over_.store(false, std::memory_order_seq_cst);
  }
}

bool Session::wait(std::span<Operation* const> operations, const Deadline& deadline) {
  std::size_t next = 0;
  const auto all_done = [&] {
    while (next < operations.size() && operations[next]->done()) ++next;
    return next == operations.size();
  };
  const auto recorded = all_done() ? timeline::Waiting() : waiting_for(*operations[next]);
  auto& waits_for = host_->my_rank().waits_for;
  std::uint64_t said = 0;
  const auto say = [&](const Operation& operation) {
    said =
        std::uint64_t{operation.set.value()} << 32U | (operation.tensor.value() + std::uint64_t{1});
    waits_for.store(said, std::memory_order_relaxed);
  };
  while (!all_done()) {
    say(*operations[next]);
    if (claim_token(*operations[next], deadline)) {
      do {
        say(*operations[next]);
        drive(operations[next], deadline);
      } while (!all_done() && !deadline.expired(steady().now()) &&
               taker_.load(std::memory_order_relaxed) != kTakerWaits);
      return_token();
    }
    if (!all_done() && deadline.expired(steady().now())) break;
  }
  give_turns_back();
  if (said != 0 && waits_for.load(std::memory_order_relaxed) == said)
    waits_for.store(0, std::memory_order_relaxed);
  return all_done();
}

void Session::sleep_in_background() {
  auto& slot = host_->my_slot();
  slot.background_sleepers.fetch_add(1, std::memory_order_seq_cst);
  const auto seen = slot.bell.load(std::memory_order_seq_cst);
  const bool free = !token_.load(std::memory_order_seq_cst);
  // Of callers that found the token here one is handed it; what the others have made ready is cut
  // by nobody else. This thread's own ring, as it returned the token, is over by now.
  const auto needed = [this] {
    return sets_.has_news() ||
           (local_waiters_.load(std::memory_order_seq_cst) != 0 && sets_.can_cut());
  };
  // While somebody else has the token there is nothing to do here: returning it rings.
  const bool awaited = handed_over_.load(std::memory_order_seq_cst);
  if (!stopping_.load(std::memory_order_seq_cst) && (awaited || !(free && needed()))) {
    // Stalls are for those who wait to see, if anybody does.
    const auto limit = stalls_.until_due(steady().now());
    futex::wait(slot.bell, seen, limit == Duration::max() ? limit : limit + kOthersTurn,
                kBackground);
  }
  slot.background_sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void Session::run_background() {
  pthread_setname_np(pthread_self(), "horo-progress");
  if (host_->local_size() > 1) take_short_turns();
  while (!stopping_.load(std::memory_order_seq_cst)) {
    if (try_token()) {
      drive(nullptr, Deadline::never());
      return_token();
      hand_over();
    }
    sleep_in_background();
  }
}

}  // namespace horo::runtime
