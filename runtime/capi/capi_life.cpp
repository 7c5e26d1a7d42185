// SPDX-License-Identifier: Apache-2.0
// The C ABI of a rank's life: joining the job, again and again, and leaving it.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <pthread.h>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "runtime/capi/capi_support.hpp"

namespace {

using horo::Deadline;
using horo::Duration;
using horo::Errc;
using horo::MutexLock;
using horo::Rank;
using horo::Status;
using horo::SteadyClock;
using horo::runtime::Session;
using horo::runtime::SessionOptions;
using horo::runtime::bootstrap::Lookup;
using horo::runtime::bootstrap::Meeting;
using horo::runtime::capi::guarded;
using horo::runtime::capi::Process;
using horo::runtime::capi::process;
using horo::runtime::capi::report;

/// The launcher of an elastic job keeps to the timeout; this is for a launcher that is stuck.
constexpr Duration kAfterLauncher = std::chrono::seconds(30);

// Before a rank that could not meet the others calls again: where the reason stays, the launcher is
// not asked for hundreds of generations per second.
constexpr Duration kFirstPause = std::chrono::milliseconds(1);
constexpr Duration kLongestPause = std::chrono::seconds(1);
constexpr int kMostAttempts = 1000;  ///< Others may join each time, so that only this rank knows.

/// A rank that ends by exit() without horo_shutdown leaves the job in good order.
void leave_process() {
  auto& p = process();
  // Another thread may wait in horo_init for hours. It has joined nothing that it could leave.
  if (p.entering.load()) return;
  horo_shutdown();
  if (p.forked.load(std::memory_order_relaxed)) return;
  const MutexLock lock(p.life);
  p.bootstrap.retire();
}

void prepare_process() {
  static const bool once = [] {
    pthread_atfork(nullptr, nullptr,
                   [] { process().forked.store(true, std::memory_order_relaxed); });
    return std::atexit(leave_process) == 0;
  }();
  static_cast<void>(once);
}

/// The ranks have met; they join.
Status join(Process& p, Meeting meeting, SessionOptions& options) HORO_REQUIRES(p.life) {
  // Later generations have the same settings.
  if (meeting.identity.rank == Rank{0} && meeting.membership.generation <= 1)
    horo::runtime::capi::warn_of_settings();
  HORO_TRY_STATUS(horo::runtime::capi::read_place(options, meeting.identity));
  auto recording = options.recording;
  recording.trace = horo::runtime::capi::trace_of(recording.trace, meeting.membership.generation);
  horo::runtime::start_recording(recording, meeting.identity);
  if (meeting.membership.generation != 0) {
    horo::runtime::record_entered({.generation = meeting.membership.generation,
                                   .ranks = meeting.identity.size,
                                   .survivors = meeting.membership.survivors});
  }
  // Each generation's search has a log of its own, as it has a trace of its own.
  auto own = options;
  own.tuner.log_file =
      horo::runtime::capi::trace_of(options.tuner.log_file, meeting.membership.generation);
  HORO_TRY(p.owner, Session::join(std::move(meeting), own));
  p.unnamed.store(0, std::memory_order_relaxed);
  p.wire = options.wire;
  p.arenas.enter(p.owner->arena());
  p.session.store(p.owner.get(), std::memory_order_release);
  p.joined.store(true, std::memory_order_release);
  return {};
}

/// The ranks of a generation could not meet or join because one of them has ended or does not come,
/// and may in the next one.
bool may_meet_again(Errc code) {
  return code == Errc::peer_lost || code == Errc::timed_out || code == Errc::cancelled ||
         code == Errc::shut_down || code == Errc::io;
}

/// The end of one attempt to enter an epoch.
struct Attempt {
  Status status;
  bool may_repeat = false;  ///< Another generation of an elastic job may come about.
};

Attempt meet_and_join(Process& p, const Lookup& lookup,
                      const horo::runtime::bootstrap::MeetLimits& limits, SessionOptions& options)
    HORO_REQUIRES(p.life) {
  auto meeting = p.bootstrap.meet(lookup, limits);
  if (!meeting) {
    const bool again = may_meet_again(meeting.error().code);
    return {.status = horo::Failure(std::move(meeting).error()), .may_repeat = again};
  }
  const horo::Epoch generation{meeting->membership.generation};
  auto joined = join(p, std::move(*meeting), options);
  if (joined) {
    if (generation.value() != 0) p.bootstrap.enter(generation);
    return {.status = {}};
  }
  horo::runtime::stop_recording();
  const auto code = joined.error().code;
  // A rank that has ended refuses connections.
  const bool again = may_meet_again(code) || code == Errc::unavailable;
  return {.status = std::move(joined), .may_repeat = again};
}

/// A connection that is refused may be a rank that has just ended; but when it is refused again and
/// again in generations that the launcher has formed anew, something lasting is wrong.
constexpr int kMostRefusals = 8;

/// In an elastic job it asks the launcher for another generation as long as one could not meet: the
/// launcher, which sees all ranks, ends a job whose ranks cannot. The time that this rank has
/// waited before, perhaps as a spare, does not count. `lookup` finds the variables of the launcher.
Status enter(Process& p, const Lookup& lookup, SessionOptions options) HORO_REQUIRES(p.life) {
  const auto& clock = SteadyClock::instance();
  const bool elastic = horo::runtime::capi::is_elastic(lookup);
  auto pause = kFirstPause;
  int refusals = 0;
  for (int attempts = 1;; ++attempts) {
    auto attempt = meet_and_join(p, lookup,
                                 {.deadline = Deadline::in(clock, options.start_timeout),
                                  .release_timeout = options.release_timeout,
                                  .membership = options.elastic_timeout + kAfterLauncher,
                                  .start_timeout = options.start_timeout},
                                 options);
    if (attempt.status || !elastic || !attempt.may_repeat) return std::move(attempt.status);
    const auto& why = attempt.status.error().message;
    refusals = attempt.status.error().code == Errc::unavailable ? refusals + 1 : 0;
    if (refusals == kMostRefusals) return std::move(attempt.status);
    if (attempts == kMostAttempts) {
      return horo::fail(Errc::unavailable, "this rank could not join in {} generations, lastly: {}",
                        attempts, why);
    }
    horo::log::info("runtime", "the ranks of a generation could not meet: {}", why);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

/// Says that a thread waits for the other ranks, as long as it lives.
class Entering {
 public:
  explicit Entering(std::atomic<bool>& word) : word_(word) { word_.store(true); }

  ~Entering() { word_.store(false); }

  Entering(const Entering&) = delete;
  Entering& operator=(const Entering&) = delete;

 private:
  std::atomic<bool>& word_;
};

Status start_session(Process& p, const Lookup& lookup) HORO_REQUIRES(p.life) {
  prepare_process();
  HORO_TRY(auto options, horo::runtime::capi::read_options());
  p.session.store(nullptr, std::memory_order_release);
  if (p.owner != nullptr) p.sessions.fetch_add(1, std::memory_order_relaxed);
  p.owner.reset();
  const Entering entering(p.entering);
  return enter(p, lookup, std::move(options));
}

horo_status init(const Lookup& lookup) {
  auto& p = process();
  return guarded([&p, &lookup] {
    const MutexLock lock(p.life);
    return p.joined.load(std::memory_order_relaxed) ? HORO_OK : report(start_session(p, lookup));
  });
}

}  // namespace

extern "C" {

HORO_API horo_status horo_init(void) {
  return init([](const char* name) -> const char* { return std::getenv(name); });
}

HORO_API horo_status horo_init_alone(void) {
  return init([](const char*) -> const char* { return nullptr; });
}

HORO_API horo_status horo_shutdown(void) {
  auto& p = process();
  if (p.forked.load(std::memory_order_relaxed)) return HORO_OK;
  const MutexLock lock(p.life);
  if (!p.joined.exchange(false)) return HORO_OK;
  p.owner->shutdown();
  horo::runtime::stop_recording();
  return HORO_OK;
}

HORO_API int horo_is_initialized(void) {
  const auto& p = process();
  return p.joined.load(std::memory_order_acquire) && !p.forked.load(std::memory_order_relaxed) ? 1
                                                                                               : 0;
}

}  // extern "C"
