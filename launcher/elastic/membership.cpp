// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/membership.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/exit_code.hpp"
#include "launcher/elastic/earliest.hpp"
#include "launcher/elastic/membership_end.hpp"
#include "launcher/elastic/membership_forming.hpp"
#include "launcher/elastic/membership_losses.hpp"
#include "launcher/elastic/membership_words.hpp"
#include "launcher/job/describe.hpp"
#include "launcher/job/job_state.hpp"
#include "launcher/job/restart_policy.hpp"

namespace horo::launcher {

namespace {

bool ends(const MembershipState& state) {
  return state.phase == MembershipPhase::ending || state.phase == MembershipPhase::stopping;
}

void on(MembershipState& state, const HostsOffered& event, TimePoint now) {
  const bool first = !state.hosts.offered_yet();
  auto lines = state.hosts.offer(event.hosts);
  if (ends(state)) return;
  // The first offer is the user's own; a long list of changes is one line.
  if (!first) {
    constexpr std::size_t kMostLines = 8;
    if (lines.size() > kMostLines) {
      const auto more = lines.size() - kMostLines;
      lines.resize(kMostLines);
      lines.push_back(fmt::format("{} more hosts changed", more));
    }
    for (auto& line : lines) state.orders.changes.push_back(std::move(line));
  }
  choose_leavers(state, now);
}

void on(MembershipState& state, const OfferFailed& event, TimePoint now) {
  if (ends(state)) return;
  if (state.hosts.offered_yet()) {
    state.orders.changes.push_back(
        fmt::format("{}; the last known hosts stay", event.error.message));
    return;
  }
  fail_job(state,
           {.text = fmt::format("the hosts could not be listed: {}", event.error.message),
            .exit_code = exit_code::kFailure,
            .end_cause = EndCause::unstartable},
           now);
}

void on(MembershipState& state, const WorkerStarted& event, TimePoint) {
  auto* worker = state.workers.find(event.worker);
  if (worker != nullptr && worker->phase == WorkerPhase::starting)
    worker->phase = WorkerPhase::started;
}

int code_of(const Error& error) {
  if (error.code == Errc::not_found) return exit_code::kCommandNotFound;
  if (error.code == Errc::permission_denied) return exit_code::kNotExecutable;
  return exit_code::kFailure;
}

EndCause cause_of(const Error& error) {
  return may_pass(error) ? EndCause::shortage : EndCause::unstartable;
}

void on(MembershipState& state, const WorkerNotStarted& event, TimePoint now) {
  auto* worker = state.workers.find(event.worker);
  if (worker == nullptr || worker->attempt > 0) return;
  const bool asked_to_end = worker->phase == WorkerPhase::ending;
  worker->phase = WorkerPhase::ended;
  if (asked_to_end || state.phase == MembershipPhase::stopping) return;
  const auto why = fmt::format("could not be started: {}", event.error.message);
  const int code = code_of(event.error);
  const auto cause = cause_of(event.error);
  if (state.phase == MembershipPhase::ending) {
    return note_late_failure(state, {.exit_code = code,
                                     .failure = fmt::format("{} {}", named(state, *worker), why),
                                     .worker = worker->number,
                                     .cause = cause});
  }
  blame(state, *worker,
        {.why = why, .exit_code = code, .for_good = code != exit_code::kFailure, .cause = cause},
        now);
}

/// A worker that is not in the job any more has its answer already, whatever it asks.
bool answer_outsider(MembershipState& state, const ElasticWorker& worker) {
  const bool removed = worker.phase == WorkerPhase::removed ||
                       (worker.phase == WorkerPhase::ending && !worker.blamed);
  if (state.phase == MembershipPhase::stopping) {
    refuse(state, worker, "the job is being stopped");
  } else if (removed) {
    state.orders.removed.push_back(
        {.worker = worker.number, .attempt = worker.attempt, .reason = worker.why});
  } else if (worker.phase == WorkerPhase::ending) {
    refuse(state, worker, worker.why);
  } else if (state.phase == MembershipPhase::ending) {
    refuse(state, worker, state.verdict.ending);
  } else {
    return false;
  }
  return true;
}

void on(MembershipState& state, const WorkerCalled& event, TimePoint now) {
  auto* worker = state.workers.find(event.worker);
  if (worker == nullptr) {
    // A process that was lost with its host may still run, and would wait for ever.
    state.orders.refused.push_back(
        {.worker = event.worker,
         .attempt = event.attempt,
         .reason =
             fmt::format("worker {} is not part of this job, or not any more", event.worker)});
    return;
  }
  if (event.attempt <= worker->attempt) return;
  worker->attempt = event.attempt;
  if (answer_outsider(state, *worker)) return;
  // A process that was never given a place cannot have been in a generation.
  if (worker->was_member) worker->entered = event.generation;
  state.state_exists |= worker->entered > 0;
  worker->phase = WorkerPhase::called;
  worker->due.reset();
  if (!worker->rank) return;
  if (state.phase == MembershipPhase::running) note_first_call(state, *worker, now);
  begin_regrouping(state, now);
}

/// A worker that was not told to end has ended with code 0. True: the program is ending.
bool ends_program(MembershipState& state, const ElasticWorker& worker) {
  // A worker of a host that goes may leave in this way while others train on. Somebody stays when
  // all members are to go, so if none has stayed, they have ended the training.
  if (worker.leave == LeaveCause::host_going)
    return worker.rank.has_value() && state.workers.members().empty();
  return worker.rank.has_value() || state.generation == 0;
}

/// Whoever ends with code 0 but has not left its generation was needed there: its peers lose it.
std::string describe_end(const RankExit& exit) {
  if (exit.wait_status != 0) return describe(exit);
  return exit.undetached ? "ended with code 0 without horo_shutdown, while it was a member"
                         : "ended with code 0 before it joined the job";
}

void take_end(MembershipState& state, ElasticWorker& worker, const RankExit& exit, TimePoint now) {
  const bool ended_well = exit.wait_status == 0;
  const auto text = describe_end(exit);
  const int code = ended_well ? exit_code::kFailure : exit_code_of_status(exit.wait_status);
  if (state.phase == MembershipPhase::ending) {
    if (ended_well) return;
    return note_late_failure(state, {.exit_code = code,
                                     .failure = fmt::format("{}: {}", named(state, worker), text),
                                     .worker = worker.number,
                                     .cause = EndCause::worker,
                                     .wait_status = exit.wait_status});
  }
  if (ended_well && !exit.undetached && ends_program(state, worker))
    return begin_ending(state, worker, now);
  if (worker.leave == LeaveCause::host_going) return lose(state, worker, worker.why, false, now);
  blame(
      state, worker,
      {.why = text, .exit_code = code, .cause = EndCause::worker, .wait_status = exit.wait_status},
      now);
}

void on(MembershipState& state, const WorkerEnded& event, TimePoint now) {
  auto* worker = state.workers.find(event.exit.rank.value());
  if (worker == nullptr) return;
  const bool expected = !worker->counts() || state.phase == MembershipPhase::stopping;
  worker->phase = WorkerPhase::ended;
  if (!expected) take_end(state, *worker, event.exit, now);
}

void lose_worker_of_host(MembershipState& state, ElasticWorker& worker, const std::string& why,
                         EndCause cause, TimePoint now) {
  const bool expected = !worker.counts() || state.phase == MembershipPhase::stopping;
  worker.phase = WorkerPhase::ended;
  if (expected) return;
  const JobEnd end{
      .exit_code = exit_code::kHostLost, .failure = why, .worker = worker.number, .cause = cause};
  if (state.phase == MembershipPhase::ending) return note_late_failure(state, end);
  const bool failed = worker.leave != LeaveCause::host_going;
  if (failed && !state.verdict.first_failed) state.verdict.first_failed = end;
  lose(state, worker, why, failed, now);
}

void on(MembershipState& state, const AgentLost& event, TimePoint now) {
  if (!state.hosts.has(event.host)) return;
  auto& host = state.hosts.at(event.host);
  if (std::exchange(host.agent, AgentPhase::none) == AgentPhase::none) return;
  const auto why = fmt::format("host {} was lost: {}", host.name, event.error.message);
  bool had_workers = false;
  for (auto& worker : state.workers.all()) {
    if (!worker.living() || worker.host != event.host) continue;
    had_workers = true;
    lose_worker_of_host(state, worker, why, cause_of(event.error), now);
  }
  if (had_workers && !ends(state)) put_aside(state, event.host, why, now);
}

void on(MembershipState& state, const AgentClosed& event, TimePoint now) {
  if (!state.hosts.has(event.host)) return;
  const auto living = state.workers.living_by_host(state.hosts.all().size());
  if (living[event.host] > 0 && state.phase != MembershipPhase::stopping) {
    return on(
        state,
        AgentLost{event.host, {Errc::protocol, "its agent finished before its workers had ended"}},
        now);
  }
  state.hosts.at(event.host).agent = AgentPhase::none;
}

void on(MembershipState& state, const HostLeaving& event, TimePoint now) {
  if (!state.hosts.has(event.host) || ends(state)) return;
  const auto& host = state.hosts.at(event.host);
  if (host.slots == 0 && host.agent == AgentPhase::none) return;
  auto why = event.signal == 0
                 ? fmt::format("host {} was asked to leave", host.name)
                 : fmt::format("host {} got {}", host.name, describe_signal(event.signal));
  if (host.use != HostUse::leaving) state.orders.changes.push_back(why);
  state.hosts.leave(event.host, event.signal, std::move(why), now + event.within);
  choose_leavers(state, now);
}

void give_back(MembershipState& state, std::size_t host, TimePoint now) {
  const auto& returned = state.hosts.at(host);
  if (returned.slots > 0)
    state.orders.changes.push_back(fmt::format("host {} can be used again", returned.name));
  choose_leavers(state, now);
}

void on(MembershipState& state, const HostReturned& event, TimePoint now) {
  if (!state.hosts.has(event.host) || ends(state)) return;
  if (state.hosts.at(event.host).use == HostUse::usable) return;
  state.hosts.give_back(event.host);
  give_back(state, event.host, now);
}

void on(MembershipState& state, const LauncherSignalled& event, TimePoint now) {
  const bool stopping = state.phase == MembershipPhase::stopping;
  if (event.number == SIGUSR1 || event.number == SIGUSR2) {
    if (!stopping) state.orders.pass_signal = event.number;
    return;
  }
  // SIGPIPE says that the reader of the output is gone; nobody has asked for an end.
  if (event.number == SIGPIPE && ends(state)) return;
  const bool again = stopping && !std::exchange(state.echo_due, false);
  const bool only_descendants =
      state.phase == MembershipPhase::ending && state.workers.living() == 0;
  if (!again && !only_descendants) {
    if (!stopping) stop_by_signal(state, event.number, "", now);
    return;
  }
  state.orders.kill = true;
  state.killed = true;
  state.stop_by = now + state.rules.close_timeout;
}

void on(MembershipState& state, const LauncherSuspended&, TimePoint now) {
  if (!state.suspended_at) state.suspended_at = now;
  // Workers that are being stopped are not suspended: they have to end.
  if (state.phase != MembershipPhase::stopping) state.orders.pass_signal = SIGSTOP;
}

void delay(std::optional<TimePoint>& deadline, Duration by) {
  if (deadline) *deadline += by;
}

void on(MembershipState& state, const LauncherResumed&, TimePoint now) {
  if (state.phase != MembershipPhase::stopping) state.orders.pass_signal = SIGCONT;
  if (!state.suspended_at) return;
  const auto by = now - *std::exchange(state.suspended_at, std::nullopt);
  state.workers.delay(by);
  state.hosts.delay(by);
  for (auto* deadline : {&state.round.all_by, &state.round.enough_by, &state.notices.joined_by,
                         &state.round.since, &state.unmet_since, &state.stop_by})
    delay(*deadline, by);
  state.gave_up.since += by;
}

void on(MembershipState& state, const JobTimedOut&, TimePoint now) {
  if (state.phase == MembershipPhase::ending && state.workers.living() == 0) return;
  fail_job(state,
           {.text = "the job did not end within --timeout",
            .exit_code = exit_code::kStartTimeout,
            .end_cause = EndCause::time_limit},
           now);
}

void on(MembershipState&, const Ticked&, TimePoint) {}

/// Tells the user once for each generation that the job cannot go on without more workers.
void tell_wait(MembershipState& state, TimePoint now) {
  const bool waits = state.phase == MembershipPhase::seeking
                         ? state.hosts.offered_yet()
                         : state.phase != MembershipPhase::running && all_have_called(state, now);
  if (waits && !std::exchange(state.round.wait_told, true))
    state.orders.changes.push_back(waiting_for(state, now));
}

/// Everything that follows from the state after an event, whichever it was.
void settle(MembershipState& state, TimePoint now) {
  if (!ends(state)) {
    for (const auto host : state.hosts.give_back_due(now)) give_back(state, host, now);
    expire_workers(state, now);
    dismiss_newcomers(state, now);
    seek_slots(state, now);
    judge(state, now);
    form_when_ready(state, now);
    if (state.orders.formed) dismiss_newcomers(state, now);
    judge_shortage(state, now);
  } else {
    expire_removed(state, now);
  }
  if (ends(state)) return settle_end(state, now);
  start_workers(state, now);
  announce_changes(state, now);
  tell_wait(state, now);
  close_hosts(state);
}

/// The event changes its own worker only: no order, phase or earlier deadline follows.
bool leads_to_nothing(MembershipState& state, const MembershipEvent& event, TimePoint now) {
  if (std::holds_alternative<WorkerStarted>(event)) return true;
  const auto* call = std::get_if<WorkerCalled>(&event);
  return call != nullptr && waits_for_others(state, *call, now);
}

std::optional<TimePoint> next_deadline(const MembershipState& state, TimePoint now) {
  std::optional<TimePoint> next;
  // A deadline that has passed is either acted on or superseded by another one.
  const auto consider = [&](std::optional<TimePoint> deadline) {
    if (deadline && *deadline > now) next = earliest(next, deadline);
  };
  consider(state.stop_by);
  if (state.phase == MembershipPhase::finished) return std::nullopt;
  if (state.phase == MembershipPhase::stopping) return next;
  consider(state.workers.next_deadline(now));
  if (ends(state)) return next;
  consider(state.hosts.next_deadline());
  consider(state.round.all_by);
  consider(state.round.enough_by);
  consider(state.notices.joined_by);
  return next;
}

}  // namespace

MembershipState begin_membership(const ElasticRules& rules, TimePoint now) {
  MembershipState state(rules);
  // A survivor waits for its answer for little more than the elastic timeout.
  state.rules.rejoin_timeout = std::min(rules.rejoin_timeout, rules.elastic_timeout);
  state.round.enough_by = now + rules.elastic_timeout;
  state.orders.wake_at = state.wake_at = state.round.enough_by;
  return state;
}

MembershipState next(MembershipState state, const MembershipEvent& event, TimePoint now) {
  state.orders = {};
  const auto wake_at = std::exchange(state.wake_at, std::nullopt);
  if (state.phase == MembershipPhase::finished) return state;
  const bool changes_little = wake_at > now && leads_to_nothing(state, event, now);
  std::visit([&](const auto& e) { on(state, e, now); }, event);
  if (state.suspended_at) return state;
  if (changes_little) {
    state.orders.wake_at = state.wake_at = wake_at;
    return state;
  }
  settle(state, now);
  state.workers.forget_ended();
  state.orders.wake_at = state.wake_at = next_deadline(state, now);
  return state;
}

}  // namespace horo::launcher
