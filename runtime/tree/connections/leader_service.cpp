// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/connections/leader_service.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

#include "base/race_point.hpp"
#include "base/signals_blocked.hpp"

namespace horo::runtime::tree {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

constexpr Duration kLeaveTime = 1s;
constexpr Duration kCancelPeriod = 20ms;  // How often a start checks whether it was cancelled.

TimePoint now() {
  return SteadyClock::instance().now();
}

}  // namespace

LeaderService::LeaderService(LeaderServiceParams params, LeaderListener listener, HostState& state)
    : params_(std::move(params)),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      connections_(params_, leader_, std::move(listener)),
      leader_(params_.leader, params_.hosts, state, connections_) {}

Result<std::unique_ptr<LeaderService>> LeaderService::start(
    LeaderServiceParams params, LeaderListener listener, HostState& state, const Deadline& deadline,
    const std::function<bool()>& cancelled) {
  HORO_TRY_STATUS(validate(params.hosts, params.leader.radix));
  std::unique_ptr<LeaderService> service(
      new LeaderService(std::move(params), std::move(listener), state));
  if (!service->bell_) return fail_errno(errno, "making an eventfd");
  HORO_TRY_STATUS(service->connect_all(deadline, cancelled));
  service->thread_ = start_quiet_thread([raw = service.get()] { raw->run(); });
  return service;
}

Status LeaderService::connect_all(const Deadline& deadline,
                                  const std::function<bool()>& cancelled) {
  const MutexLock lock(mutex_);
  while (!leader_.connected() || connections_.has_output()) {
    if (cancelled()) return fail(Errc::peer_lost, "a rank was lost before all hosts had connected");
    const auto& refusal = connections_.refusal();
    if (leader_.place().parent >= 0 && !connections_.has_parent()) {
      // The parent listens before its address is known. It may close the connection while too many
      // strangers connect to its port; a refusal with another reason is final.
      if (refusal.code != Errc::ok && refusal.code != Errc::peer_lost) return Failure(refusal);
      HORO_TRY_STATUS(connections_.connect_parent(deadline));
    }
    const auto left = deadline.left(now());
    if (left <= Duration::zero()) {
      return fail(Errc::timed_out, "the leaders of {} have not connected{}{}", leader_.absent(),
                  refusal.code == Errc::ok ? "" : "; a connection was refused: ", refusal.message);
    }
    turn(std::min(left, kCancelPeriod));
  }
  connections_.stop_listening();
  return {};
}

LeaderService::~LeaderService() {
  leave();
}

void LeaderService::leave() {
  {
    const MutexLock lock(mutex_);
    if (!leaving_) leader_.leave();
    leaving_ = true;
    connections_.flush();
  }
  ring();
  if (thread_.joinable()) thread_.join();
}

LinkFacts LeaderService::links() const {
  const MutexLock lock(mutex_);
  return connections_.links();
}

void LeaderService::run() {
  pthread_setname_np(pthread_self(), "horo-tree");
  const MutexLock lock(mutex_);
  auto until = Deadline::never();
  while (!leaving_ || connections_.has_output()) {
    if (leaving_ && until.is_never()) until = Deadline::in(SteadyClock::instance(), kLeaveTime);
    if (until.expired(now())) break;
    wakes_.fetch_add(1, std::memory_order_relaxed);
    const auto next = std::min(leader_.next_time(), soon_.load(std::memory_order_seq_cst));
    turn(std::min(until.left(now()), Deadline::at(next).left(now())));
    if (soon_.load(std::memory_order_relaxed) <= now()) {
      // Reset before the look: news that come after the look make it due again.
      soon_.store(TimePoint::max(), std::memory_order_seq_cst);
      leader_.on_news(now());
    }
    leader_.on_time(now());
    connections_.flush();
  }
  connections_.close_all();
}

void LeaderService::turn(Duration longest) {
  std::vector<pollfd> entries{{.fd = bell_.value(), .events = POLLIN, .revents = 0}};
  connections_.add_to(entries);
  timespec time{};
  const bool limited = longest != Duration::max();
  if (limited) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
    time = {.tv_sec = seconds.count(), .tv_nsec = static_cast<long>((longest - seconds).count())};
  }
  mutex_.unlock();
  race_point();
  ppoll(entries.data(), entries.size(), limited ? &time : nullptr, nullptr);
  mutex_.lock();
  if ((entries[0].revents & POLLIN) != 0) {
    std::uint64_t rings = 0;
    [[maybe_unused]] const auto n = ::read(bell_.value(), &rings, sizeof rings);
  }
  connections_.handle(entries.data() + 1, entries.size() - 1);
}

void LeaderService::ring() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(bell_.value(), &one, sizeof one);
}

void LeaderService::add_set(SetId set, const RankRanges& members, HostLog* log) {
  const MutexLock lock(mutex_);
  leader_.add_set(set, members, log, now());
  leader_.on_news(now());
  connections_.flush();
  ring();
}

void LeaderService::remove_set(SetId set) {
  const MutexLock lock(mutex_);
  leader_.remove_set(set);
}

void LeaderService::poke() {
  race_point();
  const MutexLock lock(mutex_);
  const auto due = leader_.next_time();
  leader_.on_news(now());
  connections_.flush();
  // The thread sleeps until the time it knew: wake it for output that is left and earlier times.
  if (connections_.has_output() || leader_.next_time() < due) ring();
}

void LeaderService::change_tuning(SetId set, const Tuning& tuning) {
  const MutexLock lock(mutex_);
  leader_.change_tuning(set, tuning, now());
  connections_.flush();
  ring();
}

void LeaderService::ask(StallQuestion question) {
  const MutexLock lock(mutex_);
  leader_.ask(std::move(question), now());
  connections_.flush();
  ring();
}

void LeaderService::poke_soon(Duration delay) {
  auto idle = TimePoint::max();
  if (!soon_.compare_exchange_strong(idle, now() + delay, std::memory_order_seq_cst)) return;
  race_point();
  ring();
}

LeaderCounters LeaderService::counters() const {
  const MutexLock lock(mutex_);
  return leader_.counters();
}

}  // namespace horo::runtime::tree
