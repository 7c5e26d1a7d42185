// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/state.hpp"

#include <algorithm>
#include <csignal>
#include <sys/wait.h>
#include <utility>

#include "base/exit_code.hpp"

namespace horo::launcher {

namespace {

bool being_stopped(const JobState& state) {
  return state.phase == Phase::failing || state.phase == Phase::stopping;
}

bool is_rank(const JobState& state, Rank rank) {
  return rank.value() >= 0 && rank.index() < state.ranks.size();
}

bool is_final(RankPhase phase) {
  return phase == RankPhase::ended || phase == RankPhase::not_started || phase == RankPhase::lost;
}

Poison poison_for(const FirstFailure& failure) {
  if (failure.exit.heard.value() >= 0) return {failure.exit.heard, LossCause::vanished, 0};
  const Rank rank = failure.rank.value_or(Rank{-1});
  switch (failure.kind) {
    case FailureKind::exited:
    case FailureKind::left:
      return {rank, LossCause::exited,
              static_cast<std::uint32_t>(WEXITSTATUS(failure.exit.wait_status))};
    case FailureKind::signalled:
      return {rank, LossCause::signalled,
              static_cast<std::uint32_t>(WTERMSIG(failure.exit.wait_status))};
    case FailureKind::host_lost:
      return {Rank{-1}, LossCause::host_lost, 0};
    case FailureKind::not_spawned:
      return {rank, LossCause::aborted, 0};
    case FailureKind::start_timeout:
    case FailureKind::time_limit:
      break;
  }
  return {Rank{-1}, LossCause::aborted, 0};
}

/// The first failure decides about the job; any later one only happened.
void fail_job(JobState& state, FirstFailure failure) {
  if (being_stopped(state)) return;
  state.phase = Phase::failing;
  state.orders.stop = poison_for(failure);
  const auto to_blame = is_rank(state, failure.exit.heard)
                            ? state.placement.ranks[failure.exit.heard.index()].host
                            : failure.host;
  state.orders.stop_host = state.placement.hosts[to_blame].name;
  state.first_failure = std::move(failure);
}

FailureKind kind_of(const RankExit& exit) {
  if (WIFSIGNALED(exit.wait_status)) return FailureKind::signalled;
  return exit.wait_status == 0 ? FailureKind::left : FailureKind::exited;
}

bool failed(const RankFate& fate) {
  return fate.phase == RankPhase::ended && (fate.exit.wait_status != 0 || fate.exit.undetached);
}

/// The first failure is this rank's, whose news has come later than those of one that had heard of
/// its end; or that of whom it had heard of itself, and so forth.
void blame(JobState& state, Rank rank) {
  for (std::size_t i = 0; i < state.ranks.size(); ++i) {
    auto& first = *state.first_failure;
    const auto& fate = state.ranks[rank.index()];
    state.ranks[first.rank->index()].after_failure = true;
    state.ranks[rank.index()].after_failure = false;
    first = {.kind = kind_of(fate.exit),
             .rank = rank,
             .host = state.placement.ranks[rank.index()].host,
             .exit = fate.exit};
    const auto next = fate.exit.heard;
    if (!is_rank(state, next) || !failed(state.ranks[next.index()]) ||
        state.ranks[next.index()].exit.heard == rank)
      return;
    rank = next;
  }
}

void on(JobState& state, const RankStarted& event) {
  if (!is_rank(state, event.rank)) return;
  auto& fate = state.ranks[event.rank.index()];
  if (fate.phase != RankPhase::waiting) return;
  fate.phase = RankPhase::running;
  --state.waiting;
  if (state.phase == Phase::starting && state.waiting == 0) {
    state.phase = Phase::running;
    state.orders.all_started = true;
  }
}

void on(JobState& state, const RankNotSpawned& event) {
  if (!is_rank(state, event.rank)) return;
  auto& fate = state.ranks[event.rank.index()];
  if (fate.phase != RankPhase::waiting) return;
  fate.phase = RankPhase::not_started;
  --state.waiting;
  fate.after_failure = being_stopped(state);
  fail_job(state, {.kind = FailureKind::not_spawned,
                   .rank = event.rank,
                   .host = state.placement.ranks[event.rank.index()].host,
                   .error = event.error});
}

/// What a rank does that was given notice and knows of it, or does not.
bool follows_notice(const JobState& state, const RankExit& exit) {
  if (state.notice_signal == 0) return false;
  if (WIFSIGNALED(exit.wait_status)) return WTERMSIG(exit.wait_status) == state.notice_signal;
  return WEXITSTATUS(exit.wait_status) == exit_code::kQueueAgain;
}

bool ended_well(const JobState& state, const RankExit& exit) {
  if (exit.wait_status == 0) return true;
  return state.noticed && WIFEXITED(exit.wait_status) &&
         WEXITSTATUS(exit.wait_status) == exit_code::kQueueAgain;
}

void on(JobState& state, const RankEnded& event) {
  const Rank rank = event.exit.rank;
  if (!is_rank(state, rank)) return;
  auto& fate = state.ranks[rank.index()];
  if (is_final(fate.phase)) return;
  on(state, RankStarted{rank});
  fate.phase = RankPhase::ended;
  fate.exit = event.exit;
  if (!is_rank(state, fate.exit.heard)) fate.exit.heard = Rank{-1};
  fate.after_failure = being_stopped(state);
  if (!ended_well(state, event.exit) || event.exit.undetached) {
    const auto& first = state.first_failure;
    const bool known = first && first->rank && first->exit.heard == rank;
    if (known && fate.exit.heard != first->rank) {
      blame(state, rank);
    } else {
      fail_job(state, {.kind = kind_of(fate.exit),
                       .rank = rank,
                       .host = state.placement.ranks[rank.index()].host,
                       .exit = fate.exit});
    }
  }
  state.orders.dismiss = --state.unended == 0;
}

/// What was still expected of a host's ranks will not come.
void close_host(JobState& state, std::size_t host, RankPhase fate_of_running) {
  state.host_done[host] = true;
  --state.hosts_left;
  for (const auto rank : state.placement.hosts[host].ranks) {
    auto& phase = state.ranks[rank.index()].phase;
    if (phase == RankPhase::running) phase = fate_of_running;
    if (phase != RankPhase::waiting) continue;
    phase = RankPhase::not_started;
    --state.waiting;
  }
}

bool all_final(const JobState& state, std::size_t host) {
  const auto& ranks = state.placement.hosts[host].ranks;
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](Rank rank) { return is_final(state.ranks[rank.index()].phase); });
}

void finish_when_done(JobState& state) {
  if (state.hosts_left > 0) return;
  if (state.first_failure && state.first_failure->kind == FailureKind::left &&
      all_succeeded(state)) {
    state.first_failure.reset();
    for (auto& fate : state.ranks) fate.after_failure = false;
  }
  state.phase = Phase::finished;
  state.orders.finish = true;
}

void on(JobState& state, const HostFinished& event) {
  if (event.host >= state.host_done.size() || state.host_done[event.host]) return;
  state.survivors += event.survivors;
  if (!all_final(state, event.host)) {
    fail_job(state, {.kind = FailureKind::host_lost,
                     .rank = {},
                     .host = event.host,
                     .error = {Errc::protocol, "its agent finished before its ranks had ended"}});
  }
  close_host(state, event.host, RankPhase::lost);
  finish_when_done(state);
}

/// What failed first had heard of a rank there, of which nothing else is known.
bool is_of_lost_host(const JobState& state, const HostLost& event) {
  if (!state.first_failure || event.error.code == Errc::cancelled) return false;
  const auto heard = state.first_failure->exit.heard;
  return is_rank(state, heard) && state.placement.ranks[heard.index()].host == event.host &&
         state.ranks[heard.index()].phase == RankPhase::lost;
}

void on(JobState& state, const HostLost& event) {
  if (event.host >= state.host_done.size() || state.host_done[event.host]) return;
  close_host(state, event.host, RankPhase::lost);
  if (event.error.code != Errc::cancelled) state.bad_hosts.push_back(event.host);
  FirstFailure failure{
      .kind = FailureKind::host_lost, .rank = {}, .host = event.host, .error = event.error};
  if (is_of_lost_host(state, event)) {
    state.ranks[state.first_failure->rank->index()].after_failure = true;
    state.first_failure = std::move(failure);
  } else {
    fail_job(state, std::move(failure));
  }
  finish_when_done(state);
}

void take_notice(JobState& state, int number) {
  // A batch system signals all processes of a job: a rank may end by it before we hear of it.
  const bool heard_before = state.first_failure && follows_notice(state, state.first_failure->exit);
  if (number == state.notice_signal && (!being_stopped(state) || heard_before))
    state.noticed = true;
}

void stop_by(JobState& state, int number) {
  state.phase = Phase::stopping;
  state.stop_signal = number;
  state.orders.stop = Poison{Rank{-1}, LossCause::aborted, static_cast<std::uint32_t>(number)};
  state.orders.stop_host = state.placement.hosts.front().name;
}

void on(JobState& state, const SignalReceived& event) {
  take_notice(state, event.number);
  if (event.number == SIGUSR1 || event.number == SIGUSR2) {
    if (!being_stopped(state)) state.orders.pass_signal = event.number;
    return;
  }
  // Nobody asks: who has read the output is gone, and writing to it tells so.
  if (event.number == SIGPIPE && (being_stopped(state) || all_succeeded(state))) return;
  state.interrupted = true;
  if (std::exchange(state.echo_due, false) && event.number == state.stop_signal) return;
  // Whoever asks again does not want to wait for the grace; nor is there anything to be gentle with
  // when every rank has ended well and only descendants are left.
  if (being_stopped(state) || all_succeeded(state)) {
    state.orders.kill = true;
    return;
  }
  stop_by(state, event.number);
}

/// Several agents ask, each for itself, and nobody is in more of a hurry for that.
void on(JobState& state, const EndAsked& event) {
  if (event.host >= state.host_done.size()) return;
  take_notice(state, event.number);
  state.interrupted = true;
  if (being_stopped(state) || all_succeeded(state)) return;
  stop_by(state, event.number);
  state.asked_host = event.host;
  state.echo_due = true;
}

/// A job that is being stopped goes on ending.
void on(JobState& state, const Suspended&) {
  if (!being_stopped(state)) state.orders.pass_signal = SIGSTOP;
}

void on(JobState& state, const Resumed&) {
  if (!being_stopped(state)) state.orders.pass_signal = SIGCONT;
}

void on(JobState& state, const StartTimedOut& event) {
  if (state.phase != Phase::starting) return;
  state.bad_hosts = event.late;
  fail_job(state, {.kind = FailureKind::start_timeout, .error = {Errc::timed_out, event.where}});
}

void on(JobState& state, const TimeLimitPassed&) {
  if (all_succeeded(state)) return;
  fail_job(state, {.kind = FailureKind::time_limit});
}

int exit_code_of_failure(const FirstFailure& failure) {
  switch (failure.kind) {
    case FailureKind::exited:
    case FailureKind::signalled:
      return exit_code_of_status(failure.exit.wait_status);
    case FailureKind::not_spawned:
      if (failure.error.code == Errc::not_found) return exit_code::kCommandNotFound;
      if (failure.error.code == Errc::permission_denied) return exit_code::kNotExecutable;
      return exit_code::kFailure;
    case FailureKind::left:
      return exit_code::kFailure;
    case FailureKind::host_lost:
      return exit_code::kHostLost;
    case FailureKind::start_timeout:
    case FailureKind::time_limit:
      return exit_code::kStartTimeout;
  }
  return exit_code::kFailure;
}

}  // namespace

JobState initial_state(Placement placement, int notice_signal) {
  HORO_CHECK(!placement.hosts.empty());
  JobState state;
  state.ranks.resize(placement.ranks.size());
  state.host_done.resize(placement.hosts.size(), false);
  state.waiting = placement.ranks.size();
  state.unended = placement.ranks.size();
  state.hosts_left = placement.hosts.size();
  state.placement = std::move(placement);
  state.notice_signal = notice_signal;
  return state;
}

JobState next(JobState state, const JobEvent& event) {
  state.orders = {};
  if (state.phase == Phase::finished) return state;
  std::visit([&state](const auto& e) { on(state, e); }, event);
  return state;
}

bool wants_another_run(const JobState& state) {
  if (!state.noticed) return false;
  if (!state.first_failure) return true;
  const auto kind = state.first_failure->kind;
  return (kind == FailureKind::signalled || kind == FailureKind::exited) &&
         follows_notice(state, state.first_failure->exit);
}

int exit_code_of(const JobState& state) {
  if (wants_another_run(state)) return exit_code::kQueueAgain;
  if (state.first_failure) return exit_code_of_failure(*state.first_failure);
  if (state.stop_signal != 0) return exit_code::kSignalBase + state.stop_signal;
  return exit_code::kOk;
}

int exit_code_of_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return exit_code::kSignalBase + WTERMSIG(wait_status);
  return WEXITSTATUS(wait_status);
}

bool all_succeeded(const JobState& state) {
  return std::all_of(state.ranks.begin(), state.ranks.end(), [](const RankFate& fate) {
    return fate.phase == RankPhase::ended && fate.exit.wait_status == 0;
  });
}

}  // namespace horo::launcher
