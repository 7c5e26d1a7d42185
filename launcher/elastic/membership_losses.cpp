// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/membership_losses.hpp"

#include <algorithm>
#include <utility>

#include "base/exit_code.hpp"
#include "launcher/job/describe.hpp"

namespace horo::launcher {

std::string named(const MembershipState& state, const ElasticWorker& worker) {
  return fmt::format("worker {} on host {}", worker.number, state.hosts.at(worker.host).name);
}

void remove_worker(MembershipState& state, ElasticWorker& worker, std::string why, TimePoint now) {
  state.orders.removed.push_back(
      {.worker = worker.number, .attempt = worker.attempt, .reason = why});
  worker.phase = WorkerPhase::removed;
  worker.rank.reset();
  worker.due = now + state.rules.rejoin_timeout;
  worker.why = std::move(why);
}

void refuse(MembershipState& state, const ElasticWorker& worker, std::string why) {
  state.orders.refused.push_back(
      {.worker = worker.number, .attempt = worker.attempt, .reason = std::move(why)});
}

void end_worker(MembershipState& state, ElasticWorker& worker, std::string why) {
  if (worker.phase == WorkerPhase::ending || !worker.living()) return;
  if (worker.phase == WorkerPhase::called) {
    auto& answers = worker.blamed ? state.orders.refused : state.orders.removed;
    answers.push_back({.worker = worker.number, .attempt = worker.attempt, .reason = why});
  }
  state.orders.end.push_back({.worker = worker.number, .why = why});
  worker.phase = WorkerPhase::ending;
  worker.rank.reset();
  worker.why = std::move(why);
}

void begin_regrouping(MembershipState& state, TimePoint now) {
  if (state.phase != MembershipPhase::running) return;
  state.phase = MembershipPhase::regrouping;
  state.round = {.since = now, .enough_by = now + state.rules.elastic_timeout};
  state.notices.joined_by.reset();
  state.orders.over = state.generation;
  for (auto* member : state.workers.members()) {
    if (member->phase == WorkerPhase::member) member->due = now + state.rules.rejoin_timeout;
  }
}

void lose(MembershipState& state, ElasticWorker& worker, std::string why, bool failed,
          TimePoint now) {
  if (!worker.rank) return;
  worker.rank.reset();
  state.gave_up = {};
  begin_regrouping(state, now);
  state.round.left.push_back(
      {.worker = worker.number, .host = worker.host, .why = std::move(why), .failed = failed});
}

void put_aside(MembershipState& state, std::size_t host, const std::string& why, TimePoint now) {
  if (state.hosts.at(host).use != HostUse::usable) return;
  state.hosts.put_aside(host, why, now);
  const auto& aside = state.hosts.at(host);
  state.orders.changes.push_back(fmt::format(
      "host {} is put aside{}: {}", aside.name,
      aside.back_at ? fmt::format(" for {}", describe(*aside.back_at - now)) : "", why));
  choose_leavers(state, now);
}

void blame(MembershipState& state, ElasticWorker& worker, const WorkerFault& fault, TimePoint now) {
  worker.blamed = true;
  const auto text = fmt::format("{}: {}", named(state, worker), fault.why);
  if (!state.verdict.first_failed && (worker.rank || state.generation == 0)) {
    state.verdict.first_failed = {.exit_code = fault.exit_code,
                                  .failure = text,
                                  .worker = worker.number,
                                  .cause = fault.cause,
                                  .wait_status = fault.wait_status};
  }
  if (!worker.rank) state.orders.changes.push_back(text);
  const auto host = worker.host;
  const auto slot = worker.slot;
  lose(state, worker, fault.why, true, now);
  if (state.hosts.at(host).use != HostUse::usable) return;
  if (state.hosts.count_failure(host, slot) || fault.for_good) put_aside(state, host, text, now);
}

void note_first_call(MembershipState& state, ElasticWorker& worker, TimePoint now) {
  constexpr int kLeastMeetings = 3;
  auto& gave_up = state.gave_up;
  if (worker.entered == state.generation) {
    gave_up = {};
    return;
  }
  if (gave_up.worker != worker.number) gave_up = {.worker = worker.number, .since = now};
  ++gave_up.meetings;
  if (gave_up.meetings < kLeastMeetings || now < gave_up.since + state.rules.rejoin_timeout) return;
  const auto why = fmt::format("could not join the others in the last {} generations, for {}",
                               gave_up.meetings, describe(now - gave_up.since));
  blame(state, worker, {.why = why, .exit_code = exit_code::kStartTimeout}, now);
  end_worker(state, worker, why);
}

namespace {

/// The order in which workers of one host are asked to leave: those outside the generation first,
/// because nobody has to stop for them, then the newest.
bool leaves_before(const ElasticWorker* a, const ElasticWorker* b) {
  if (a->rank.has_value() != b->rank.has_value()) return !a->rank;
  return a->number > b->number;
}

std::string reason_to_leave(const ElasticHost& host) {
  if (host.use == HostUse::put_aside) return fmt::format("host {} is put aside", host.name);
  if (host.use == HostUse::leaving) return host.why;
  if (host.slots == 0) return fmt::format("host {} is no longer offered", host.name);
  return fmt::format("host {} offers only {} slot{} now", host.name, host.slots,
                     host.slots == 1 ? "" : "s");
}

void ask_to_leave(const MembershipState& state, ElasticWorker& worker, TimePoint now) {
  const auto& host = state.hosts.at(worker.host);
  const bool aside = host.use == HostUse::put_aside;
  worker.leave = aside ? LeaveCause::host_aside : LeaveCause::host_going;
  worker.why = reason_to_leave(host);
  if (aside) {
    worker.leave_by.reset();
  } else if (host.use == HostUse::leaving) {
    worker.leave_by = host.leave_by;
  } else if (!worker.leave_by) {
    worker.leave_by = now + state.rules.elastic_timeout;
  }
}

}  // namespace

void choose_leavers(MembershipState& state, TimePoint now) {
  std::vector<std::vector<ElasticWorker*>> by_host(state.hosts.all().size());
  for (auto& worker : state.workers.all()) {
    if (worker.counts()) by_host[worker.host].push_back(&worker);
  }
  for (std::size_t host = 0; host < by_host.size(); ++host) {
    auto& workers = by_host[host];
    const auto room = static_cast<std::size_t>(state.hosts.at(host).room());
    const auto leavers = workers.size() - std::min(room, workers.size());
    std::sort(workers.begin(), workers.end(), leaves_before);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (i < leavers) {
        ask_to_leave(state, *workers[i], now);
      } else {
        workers[i]->leave = LeaveCause::none;
        workers[i]->leave_by.reset();
      }
    }
  }
}

void dismiss_newcomers(MembershipState& state, TimePoint now) {
  const int most = state.rules.max_np + state.rules.spares;
  int too_many = std::max(0, state.workers.staying() - most);
  const bool closed = no_more_resets(state);
  auto& workers = state.workers.all();
  for (auto worker = workers.rbegin(); worker != workers.rend(); ++worker) {
    if (worker->rank || !worker->counts()) continue;
    // Before the first generation, a worker of a host that is put aside may still be needed.
    const bool may_stay = state.generation == 0 && worker->leave == LeaveCause::host_aside;
    if (worker->leave == LeaveCause::none) {
      if (too_many == 0 && !closed) continue;
      --too_many;
      worker->why = closed ? "--reset-limit allows no further generation"
                           : "the job has enough workers without it";
    } else if (may_stay) {
      continue;
    }
    if (worker->phase == WorkerPhase::called) {
      remove_worker(state, *worker, worker->why, now);
    } else {
      end_worker(state, *worker, worker->why);
    }
  }
}

namespace {

void expire_call(MembershipState& state, ElasticWorker& worker, TimePoint now) {
  const bool member = worker.phase == WorkerPhase::member;
  const auto why = member
                       ? fmt::format("did not come back within {} after {} of generation {}",
                                     describe(state.rules.rejoin_timeout),
                                     state.round.left.empty() ? "the end" : "the loss of a member",
                                     state.generation)
                       : fmt::format("did not call horo_init within {} after its start",
                                     describe(state.rules.start_timeout));
  blame(state, worker, {.why = why, .exit_code = exit_code::kStartTimeout}, now);
  end_worker(state, worker, why);
}

void expire_worker(MembershipState& state, ElasticWorker& worker, TimePoint now) {
  if (worker.due && *worker.due <= now) {
    worker.due.reset();
    if (worker.phase == WorkerPhase::member || worker.awaited())
      return expire_call(state, worker, now);
  }
  if (worker.counts() && worker.leave_by && *worker.leave_by <= now) {
    worker.leave_by.reset();
    const auto why = worker.why;
    lose(state, worker, why, false, now);
    end_worker(state, worker, fmt::format("had no more time to leave: {}", why));
  }
}

}  // namespace

bool no_more_resets(const MembershipState& state) {
  const auto& limit = state.rules.reset_limit;
  return state.generation > 0 && limit && state.resets >= *limit;
}

void expire_removed(MembershipState& state, TimePoint now) {
  for (auto& worker : state.workers.all()) {
    if (worker.phase != WorkerPhase::removed || !worker.due || *worker.due > now) continue;
    worker.due.reset();
    end_worker(state, worker,
               fmt::format("did not end within {} after it was removed: {}",
                           describe(state.rules.rejoin_timeout), worker.why));
  }
}

void expire_workers(MembershipState& state, TimePoint now) {
  expire_removed(state, now);
  for (auto& worker : state.workers.all()) {
    if (worker.living() && worker.phase != WorkerPhase::ending) expire_worker(state, worker, now);
  }
}

}  // namespace horo::launcher
