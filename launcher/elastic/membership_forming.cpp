// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/membership_forming.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "launcher/elastic/membership_losses.hpp"

namespace horo::launcher {

namespace {

using Workers = std::vector<ElasticWorker*>;

bool by_rank(const ElasticWorker* a, const ElasticWorker* b) {
  return *a->rank < *b->rank;
}

/// The workers that a generation could have now, by what speaks for and against them.
struct Candidates {
  Workers survivors;        ///< They stay.
  Workers aside_survivors;  ///< Their host is put aside.
  Workers going_survivors;  ///< Their host goes.
  Workers newcomers;
  Workers aside_newcomers;  ///< Only before the first generation.
};

Candidates candidates_of(MembershipState& state) {
  Candidates found;
  for (auto& worker : state.workers.all()) {
    const bool survivor =
        worker.rank && (worker.phase == WorkerPhase::member ||
                        (worker.phase == WorkerPhase::called && worker.entered > 0));
    if (survivor) {
      auto& list = worker.leave == LeaveCause::none         ? found.survivors
                   : worker.leave == LeaveCause::host_aside ? found.aside_survivors
                                                            : found.going_survivors;
      list.push_back(&worker);
    } else if (worker.phase == WorkerPhase::called) {
      if (worker.leave == LeaveCause::none) found.newcomers.push_back(&worker);
      if (worker.leave == LeaveCause::host_aside && state.generation == 0)
        found.aside_newcomers.push_back(&worker);
    }
  }
  return found;
}

void append(Workers& list, const Workers& more) {
  list.insert(list.end(), more.begin(), more.end());
}

void keep_first(Workers& list, std::size_t count) {
  if (list.size() > count) list.resize(count);
}

}  // namespace

GenerationPlan plan_generation(MembershipState& state) {
  auto found = candidates_of(state);
  auto keep = found.survivors;
  auto most = static_cast<std::size_t>(state.rules.max_np);
  const auto least = static_cast<std::size_t>(state.rules.min_np);
  if (keep.size() + found.newcomers.size() < least) {
    append(keep, found.aside_survivors);
    append(found.newcomers, found.aside_newcomers);
  }
  // Someone has to hand the state over to the newcomers, even if its host goes.
  if (keep.empty()) {
    keep = found.aside_survivors.empty() ? found.going_survivors : found.aside_survivors;
    std::sort(keep.begin(), keep.end(), by_rank);
    keep_first(keep, std::max<std::size_t>(1, most - std::min(most, found.newcomers.size())));
  }
  std::sort(keep.begin(), keep.end(), by_rank);
  keep_first(keep, most);
  GenerationPlan plan{.members = keep, .survivors = keep.size()};
  std::sort(found.newcomers.begin(), found.newcomers.end(),
            [](const auto* a, const auto* b) { return a->number < b->number; });
  keep_first(found.newcomers, most - keep.size());
  append(plan.members, found.newcomers);
  return plan;
}

bool all_have_called(const MembershipState& state, TimePoint now) {
  const auto& workers = state.workers.all();
  if (state.phase == MembershipPhase::regrouping) {
    return std::none_of(workers.begin(), workers.end(),
                        [](const auto& worker) { return worker.phase == WorkerPhase::member; });
  }
  if (now >= state.round.all_by) return true;
  // Workers beyond max_np, the spares, may prepare themselves for a long time.
  int places = state.rules.max_np;
  return std::none_of(workers.begin(), workers.end(), [&places](const auto& worker) {
    if (!worker.counts() || worker.leave != LeaveCause::none) return false;
    return places-- > 0 && worker.awaited();
  });
}

bool waits_for_others(MembershipState& state, const WorkerCalled& call, TimePoint now) {
  const auto awaited = [&state](const ElasticWorker& worker) {
    if (state.phase == MembershipPhase::regrouping) return worker.phase == WorkerPhase::member;
    return worker.awaited() && worker.leave == LeaveCause::none;
  };
  // The first generation does not wait for spares, and only a look at all workers tells which they
  // are.
  const bool patient = state.phase == MembershipPhase::regrouping ||
                       (state.phase == MembershipPhase::gathering && state.rules.spares == 0 &&
                        now < state.round.all_by);
  const auto* caller = state.workers.find(call.worker);
  if (!patient || caller == nullptr || !awaited(*caller)) return false;
  const auto& workers = state.workers.all();
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto index = (state.round.look_from + i) % workers.size();
    if (workers[index].number == call.worker || !awaited(workers[index])) continue;
    state.round.look_from = index;
    return true;
  }
  return false;
}

void seek_slots(MembershipState& state, TimePoint now) {
  if (state.phase != MembershipPhase::seeking || !state.hosts.offered_yet()) return;
  const bool patient = now < state.round.enough_by && !state.rules.hosts_are_fixed;
  if (state.hosts.room() < (patient ? state.rules.np : state.rules.min_np)) return;
  state.phase = MembershipPhase::gathering;
  state.round.all_by = now + state.rules.start_timeout;
  state.round.enough_by = *state.round.all_by + state.rules.elastic_timeout;
}

namespace {

/// Numbers the hosts by their lowest rank, and the ranks of each host in ascending order.
Placement place_members(const Workers& members) {
  std::vector<PlacedHost> hosts;
  std::unordered_map<std::size_t, std::size_t> index;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const auto [place, added] = index.try_emplace(members[rank]->host, hosts.size());
    if (added) hosts.emplace_back();
    hosts[place->second].ranks.push_back(Rank{static_cast<int>(rank)});
  }
  return number_ranks(std::move(hosts));
}

void leave_out(MembershipState& state, const Workers& members, FormedGeneration& formed,
               TimePoint now) {
  const std::unordered_set<const ElasticWorker*> staying(members.begin(), members.end());
  for (auto* worker : state.workers.members()) {
    if (staying.contains(worker)) continue;
    const auto why =
        worker->leave == LeaveCause::none ? "the job has no place for it" : worker->why;
    formed.left.push_back(
        {.worker = worker->number, .host = worker->host, .why = why, .failed = false});
    remove_worker(state, *worker, why, now);
  }
}

/// Counts how long the job has formed generations that no worker entered.
void note_meeting(MembershipState& state, const GenerationPlan& plan, TimePoint now) {
  const bool met =
      std::any_of(plan.members.begin(), plan.members.end(), [&state](const auto* worker) {
        return state.generation == 0 || worker->entered == state.generation;
      });
  state.unmet = met ? 0 : state.unmet + 1;
  if (met) state.unmet_since = now;
}

void form(MembershipState& state, const GenerationPlan& plan, TimePoint now) {
  note_meeting(state, plan, now);
  FormedGeneration formed{.generation = ++state.generation,
                          .survivors = static_cast<std::uint32_t>(plan.survivors),
                          .notice = state.notices.sequence,
                          .left = state.round.left,
                          .since = state.round.since};
  if (state.generation > 1) ++state.resets;
  leave_out(state, plan.members, formed, now);
  const auto placement = place_members(plan.members);
  for (std::size_t rank = 0; rank < plan.members.size(); ++rank) {
    auto& worker = *plan.members[rank];
    if (!worker.rank) formed.joined.push_back(worker.number);
    worker.rank = static_cast<int>(rank);
    worker.phase = WorkerPhase::member;
    worker.was_member = true;
    worker.due.reset();
    formed.members.push_back({.worker = worker.number,
                              .attempt = worker.attempt,
                              .host = worker.host,
                              .slot = worker.slot,
                              .place = placement.ranks[rank]});
  }
  state.orders.formed = std::move(formed);
  state.phase = MembershipPhase::running;
  state.round = {};
  state.notices.announced.clear();
  state.verdict.first_failed.reset();
}

/// Members of hosts that go need not wait until the job has enough workers again.
void release_leavers(MembershipState& state, const GenerationPlan& plan, TimePoint now) {
  const std::unordered_set<const ElasticWorker*> staying(plan.members.begin(), plan.members.end());
  for (auto* worker : state.workers.members()) {
    if (staying.contains(worker) || worker->leave != LeaveCause::host_going) continue;
    state.round.left.push_back(
        {.worker = worker->number, .host = worker->host, .why = worker->why});
    remove_worker(state, *worker, worker->why, now);
  }
}

}  // namespace

void form_when_ready(MembershipState& state, TimePoint now) {
  const bool forming =
      state.phase == MembershipPhase::gathering || state.phase == MembershipPhase::regrouping;
  if (!forming || !all_have_called(state, now)) return;
  const auto plan = plan_generation(state);
  if (plan.members.size() >= static_cast<std::size_t>(state.rules.min_np)) {
    return form(state, plan, now);
  }
  release_leavers(state, plan, now);
}

namespace {

bool others_come(const MembershipState& state) {
  const auto& workers = state.workers.all();
  return std::any_of(workers.begin(), workers.end(), [](const auto& worker) {
    return worker.awaited() && worker.leave == LeaveCause::none;
  });
}

/// The numbers of workers to start, with the places that they get if all workers come.
void order_starts(MembershipState& state, const std::vector<int>& numbers) {
  auto expected = state.workers.members();
  for (auto& worker : state.workers.all()) {
    if (!worker.rank && worker.counts() && worker.leave == LeaveCause::none)
      expected.push_back(&worker);
  }
  const auto placement = place_members(expected);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& worker = *expected[i];
    if (!std::binary_search(numbers.begin(), numbers.end(), worker.number)) continue;
    state.orders.start.push_back(
        {.worker = worker.number,
         .host = worker.host,
         .slot = worker.slot,
         .planned = placement.ranks[i],
         .planned_size = static_cast<int>(expected.size()),
         .joins = state.generation > 0 || i >= static_cast<std::size_t>(state.rules.max_np)});
  }
}

}  // namespace

void start_workers(MembershipState& state, TimePoint now) {
  if (state.phase != MembershipPhase::gathering && state.phase != MembershipPhase::running &&
      state.phase != MembershipPhase::regrouping)
    return;
  // Nobody can join any more.
  if (no_more_resets(state)) return;
  int wanted = state.rules.max_np + state.rules.spares - state.workers.staying();
  const auto living = state.workers.living_by_host(state.hosts.all().size());
  std::vector<int> numbers;
  for (const auto host : state.hosts.by_age()) {
    if (wanted <= 0) break;
    auto& there = state.hosts.at(host);
    if (there.agent == AgentPhase::closing) continue;
    for (int free = there.room() - living[host]; free > 0 && wanted > 0; --free) {
      numbers.push_back(state.workers.start(host, now + state.rules.start_timeout).number);
      there.agent = AgentPhase::running;
      --wanted;
    }
  }
  if (!numbers.empty()) order_starts(state, numbers);
}

void announce_changes(MembershipState& state, TimePoint now) {
  auto& notices = state.notices;
  if (state.phase != MembershipPhase::running) return;
  if (no_more_resets(state)) return;
  std::vector<int> planned;
  std::uint32_t flags = 0;
  for (const auto* worker : plan_generation(state).members) {
    planned.push_back(worker->number);
    if (!worker->rank) flags |= Notice::kAdded;
  }
  const std::unordered_set<int> staying(planned.begin(), planned.end());
  for (const auto* worker : state.workers.members()) {
    if (!staying.contains(worker->number)) flags |= Notice::kRemoved;
  }
  if (flags == 0 || planned == notices.announced) return notices.joined_by.reset();
  if ((flags & Notice::kAdded) != 0 && others_come(state)) {
    if (!notices.joined_by) notices.joined_by = now + state.rules.join_window;
    if (now < notices.joined_by) return;
  }
  notices.joined_by.reset();
  notices.announced = planned;
  state.orders.notice = {.sequence = ++notices.sequence, .flags = flags};
}

}  // namespace horo::launcher
