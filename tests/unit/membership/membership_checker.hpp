// SPDX-License-Identifier: Apache-2.0
// Checks that hold for every event of every history of an elastic job. It keeps its own books of
// calls, workers and ranks, so it does not trust the machine's.
#pragma once

#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "launcher/elastic/membership.hpp"

namespace horo::test {

using namespace horo::launcher;

inline void ensure(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

class MembershipChecker {
 public:
  explicit MembershipChecker(const ElasticRules& rules) : rules_(rules) {}

  void before(const MembershipEvent& event) {
    if (const auto* call = std::get_if<WorkerCalled>(&event)) {
      calls_[call->worker] = *call;
      if (living_.contains(call->worker)) called_.insert(call->worker);
    }
    if (const auto* end = std::get_if<WorkerEnded>(&event)) forget(end->exit.rank.value());
    if (const auto* none = std::get_if<WorkerNotStarted>(&event)) forget(none->worker);
    if (const auto* lost = std::get_if<AgentLost>(&event)) forget_host(lost->host);
    if (const auto* closed = std::get_if<AgentClosed>(&event)) forget_host(closed->host);
  }

  void after(const MembershipState& state, TimePoint now) {
    const auto& orders = state.orders;
    if (finished_) {
      ensure(!orders.formed && orders.start.empty() && orders.end.empty() && !orders.finish &&
                 orders.close.empty() && !orders.stop && !orders.wake_at,
             "orders after the end");
      return;
    }
    for (const auto& end : orders.end) ending_.insert(end.worker);
    if (orders.formed) check_formed(*orders.formed);
    for (const auto& call : orders.removed) answer(call.worker, call.attempt);
    for (const auto& call : orders.refused) answer(call.worker, call.attempt);
    if (orders.notice)
      ensure(orders.notice->sequence == ++sequence_ && orders.notice->flags != 0, "notice");
    for (const auto& start : orders.start) check_start(state, start);
    for (const auto host : orders.close) {
      for (const auto& [worker, place] : living_)
        ensure(place.host != host, "a host is closed under a worker");
    }
    check_waits(state, now);
    if (orders.finish) check_finish(state);
  }

 private:
  struct Seat {
    std::size_t host = 0;
    int slot = 0;
  };

  void forget(int worker) {
    living_.erase(worker);
    calls_.erase(worker);
  }

  void forget_host(std::size_t host) {
    for (auto worker = living_.begin(); worker != living_.end();) {
      const auto number = worker->first;
      const bool there = worker->second.host == host;
      ++worker;
      if (there) forget(number);
    }
  }

  void answer(int worker, std::uint32_t attempt) {
    const auto call = calls_.find(worker);
    ensure(call != calls_.end(), fmt::format("worker {} is answered without a call", worker));
    ensure(call->second.attempt == attempt, fmt::format("an old call of worker {}", worker));
    calls_.erase(call);
  }

  void check_formed(const FormedGeneration& formed) {
    const auto size = static_cast<int>(formed.members.size());
    ensure(formed.generation == ++generation_, "generations count by one");
    ensure(size >= rules_.min_np && size <= rules_.max_np, fmt::format("{} members", size));
    ensure(formed.notice == sequence_, "the generation has the last notice");
    std::map<int, int> ranks;
    std::size_t hosts = 0;
    std::map<std::size_t, int> on_host;
    int last = -1;
    for (int rank = 0; rank < size; ++rank) {
      const auto& member = formed.members[static_cast<std::size_t>(rank)];
      ensure(living_.contains(member.worker) && !ending_.contains(member.worker),
             fmt::format("worker {} is a member and does not live", member.worker));
      ensure(called_.erase(member.worker) == 1, "a member has not called");
      const auto call = calls_.find(member.worker);
      const bool met = call != calls_.end() && call->second.generation > 0;
      answer(member.worker, member.attempt);
      const auto before = ranks_.find(member.worker);
      const bool survivor = before != ranks_.end() && met;
      ensure(survivor == (rank < static_cast<int>(formed.survivors)), "survivors come first");
      const int order = survivor ? before->second : member.worker;
      if (rank == static_cast<int>(formed.survivors)) last = -1;
      ensure(order > last, "ranks keep their order");
      last = order;
      ensure(member.place.rank == Rank{rank}, "rank");
      if (!on_host.contains(member.host)) ensure(member.place.host == hosts++, "host index");
      ensure(member.place.local_rank == LocalRank{on_host[member.host]++}, "local rank");
      ranks[member.worker] = rank;
    }
    if (any_met_) ensure(formed.survivors > 0, "the state is lost");
    ranks_ = ranks;
    any_met_ = any_met_ || formed.survivors > 0;
  }

  void check_start(const MembershipState& state, const StartWorker& start) {
    ensure(start.worker == ++last_worker_, "worker numbers count by one");
    const auto& host = state.hosts.at(start.host);
    ensure(host.use == HostUse::usable, "a start on a host that is not usable");
    int there = 1;
    for (const auto& [worker, place] : living_) {
      if (place.host != start.host) continue;
      ++there;
      ensure(place.slot != start.slot, "two workers have one slot");
    }
    ensure(there <= host.slots, "more workers than slots");
    ensure(start.planned.rank.value() < start.planned_size, "planned rank");
    living_[start.worker] = {start.host, start.slot};
  }

  static void check_waits(const MembershipState& state, TimePoint now) {
    // A launcher that is suspended sleeps in any case.
    if (state.suspended_at) return;
    const auto& wake = state.orders.wake_at;
    ensure(!wake || *wake > now, "a tick for the past");
    switch (state.phase) {
      case MembershipPhase::seeking:
      case MembershipPhase::gathering:
      case MembershipPhase::regrouping:
        ensure(wake.has_value(), "a wait without end");
        ensure(!waiting_for(state, now).empty(), "a wait for nobody");
        break;
      case MembershipPhase::stopping:
        ensure(wake.has_value(), "a stop without end");
        break;
      case MembershipPhase::running:
      case MembershipPhase::ending:
      case MembershipPhase::finished:
        break;
    }
  }

  void check_finish(const MembershipState& state) {
    for (const auto& [worker, call] : calls_)
      ensure(false, fmt::format("worker {} has no answer at the end", worker));
    ensure(state.orders.finish->exit_code == 0 || state.verdict.signal != 0 ||
               !state.orders.finish->failure.empty(),
           "a failure without a reason");
    finished_ = true;
  }

  ElasticRules rules_;
  std::map<int, Seat> living_;
  std::map<int, WorkerCalled> calls_;  ///< Without an answer.
  std::set<int> called_;               ///< Since they were members last.
  std::set<int> ending_;
  std::map<int, int> ranks_;  ///< In the current generation.
  std::uint64_t generation_ = 0;
  std::uint64_t sequence_ = 0;
  int last_worker_ = -1;
  bool any_met_ = false;
  bool finished_ = false;
};

}  // namespace horo::test
