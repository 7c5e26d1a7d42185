// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/job_state.hpp"

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

/// The first failure stops the generation; later ones change nothing.
void fail_job(JobState& state, FirstFailure failure) {
  if (being_stopped(state)) return;
  auto& generation = state.generation;
  state.phase = Phase::failing;
  state.orders.stop = poison_for(failure);
  const auto to_blame =
      generation.has(failure.exit.heard) ? generation.host_of(failure.exit.heard) : failure.host;
  state.orders.stop_host = generation.host(to_blame).name;
  generation.first_failure = std::move(failure);
}

FailureKind kind_of(const RankExit& exit) {
  if (WIFSIGNALED(exit.wait_status)) return FailureKind::signalled;
  return exit.wait_status == 0 ? FailureKind::left : FailureKind::exited;
}

bool failed(const RankFate& fate) {
  return fate.phase == RankPhase::ended && (fate.exit.wait_status != 0 || fate.exit.undetached);
}

/// Makes `rank` the first failure: its exit arrived after that of a rank that ended because of it.
/// If `rank` itself ended because of another failed rank, that one is to blame, and so on.
void blame(Generation& generation, Rank rank) {
  for (std::size_t i = 0; i < generation.fates.size(); ++i) {
    auto& first = *generation.first_failure;
    const auto& fate = generation.fates[rank.index()];
    generation.fates[first.rank->index()].after_failure = true;
    generation.fates[rank.index()].after_failure = false;
    first = {.kind = kind_of(fate.exit),
             .rank = rank,
             .host = generation.host_of(rank),
             .exit = fate.exit};
    const auto next = fate.exit.heard;
    if (!generation.has(next) || !failed(generation.fates[next.index()]) ||
        generation.fates[next.index()].exit.heard == rank)
      return;
    rank = next;
  }
}

void on(JobState& state, const RankStarted& event) {
  auto& generation = state.generation;
  if (!generation.has(event.rank)) return;
  auto& fate = generation.fates[event.rank.index()];
  if (fate.phase != RankPhase::waiting) return;
  fate.phase = RankPhase::running;
  --generation.waiting;
  if (state.phase == Phase::starting && generation.waiting == 0) {
    state.phase = Phase::running;
    state.orders.all_started = true;
  }
}

void on(JobState& state, const RankNotSpawned& event) {
  auto& generation = state.generation;
  if (!generation.has(event.rank)) return;
  auto& fate = generation.fates[event.rank.index()];
  if (fate.phase != RankPhase::waiting) return;
  fate.phase = RankPhase::not_started;
  --generation.waiting;
  fate.after_failure = being_stopped(state);
  fail_job(state, {.kind = FailureKind::not_spawned,
                   .rank = event.rank,
                   .host = generation.host_of(event.rank),
                   .error = event.error});
}

/// Whether a rank ended because of the notice: killed by its signal, or with the code by which a
/// program asks to be queued again.
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

/// A rank's end that is a failure: the first, a consequence, or the cause of the first.
void take_failure(JobState& state, Rank rank, const RankExit& exit) {
  const auto& first = state.generation.first_failure;
  const bool caused_first = first && first->rank && first->exit.heard == rank;
  if (caused_first && exit.heard != first->rank) return blame(state.generation, rank);
  fail_job(
      state,
      {.kind = kind_of(exit), .rank = rank, .host = state.generation.host_of(rank), .exit = exit});
}

void on(JobState& state, const RankEnded& event) {
  const Rank rank = event.exit.rank;
  auto& generation = state.generation;
  if (!generation.has(rank)) return;
  auto& fate = generation.fates[rank.index()];
  if (is_final(fate.phase)) return;
  on(state, RankStarted{rank});
  fate.phase = RankPhase::ended;
  fate.exit = event.exit;
  if (!generation.has(fate.exit.heard)) fate.exit.heard = Rank{-1};
  fate.after_failure = being_stopped(state);
  if (!ended_well(state, fate.exit) || fate.exit.undetached) take_failure(state, rank, fate.exit);
  state.orders.dismiss = --generation.unended == 0;
}

/// No further news comes from this host's ranks.
void close_host(Generation& generation, std::size_t host, RankPhase fate_of_running) {
  generation.host_done[host] = true;
  --generation.hosts_left;
  for (const auto rank : generation.host(host).ranks) {
    auto& phase = generation.fates[rank.index()].phase;
    if (phase == RankPhase::running) phase = fate_of_running;
    if (phase != RankPhase::waiting) continue;
    phase = RankPhase::not_started;
    --generation.waiting;
  }
}

bool all_final(const Generation& generation, std::size_t host) {
  const auto& ranks = generation.host(host).ranks;
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](Rank rank) { return is_final(generation.fates[rank.index()].phase); });
}

/// The next generation avoids hosts that were lost, but never this machine: it is here.
void avoid_bad_hosts(JobState& state) {
  const auto& generation = state.generation;
  for (const auto host : generation.bad_hosts) {
    if (generation.this_machine != host)
      state.restart.avoided.push_back(generation.host(host).name);
  }
}

void end_generation_when_done(JobState& state, TimePoint now) {
  auto& generation = state.generation;
  if (generation.hosts_left > 0) return;
  if (generation.first_failure && generation.first_failure->kind == FailureKind::left &&
      generation.all_succeeded()) {
    generation.first_failure.reset();
    for (auto& fate : generation.fates) fate.after_failure = false;
  }
  state.orders.end_generation = true;
  state.phase = Phase::finished;
  auto& restart = state.restart;
  restart.decision = decide_restart(state.policy, state, restart.times, now);
  if (!restart.decision.restart) {
    state.orders.finish = true;
    return;
  }
  state.phase = Phase::restarting;
  state.orders.pause = restart_pause(restart.times.size());
  restart.times.push_back(now);
  restart.give_up_at.reset();
  avoid_bad_hosts(state);
}

void on(JobState& state, const HostFinished& event) {
  auto& generation = state.generation;
  if (event.host >= generation.host_done.size() || generation.host_done[event.host]) return;
  generation.survivors += event.survivors;
  if (!all_final(generation, event.host)) {
    fail_job(state, {.kind = FailureKind::host_lost,
                     .rank = {},
                     .host = event.host,
                     .error = {Errc::protocol, "its agent finished before its ranks had ended"}});
  }
  close_host(generation, event.host, RankPhase::lost);
  end_generation_when_done(state, event.now);
}

/// Whether the rank that failed first ended because of a rank on this lost host. The host is to
/// blame then.
bool explains_first_failure(const Generation& generation, const HostLost& event) {
  if (!generation.first_failure || event.error.code == Errc::cancelled) return false;
  const auto heard = generation.first_failure->exit.heard;
  return generation.has(heard) && generation.host_of(heard) == event.host &&
         generation.fates[heard.index()].phase == RankPhase::lost;
}

void on(JobState& state, const HostLost& event) {
  auto& generation = state.generation;
  if (event.host >= generation.host_done.size() || generation.host_done[event.host]) return;
  close_host(generation, event.host, RankPhase::lost);
  if (event.error.code != Errc::cancelled) generation.bad_hosts.push_back(event.host);
  FirstFailure failure{
      .kind = FailureKind::host_lost, .rank = {}, .host = event.host, .error = event.error};
  if (explains_first_failure(generation, event)) {
    generation.fates[generation.first_failure->rank->index()].after_failure = true;
    generation.first_failure = std::move(failure);
  } else {
    fail_job(state, std::move(failure));
  }
  end_generation_when_done(state, event.now);
}

void take_notice(JobState& state, int number) {
  // A batch system signals all processes of a job, so a rank may end by the signal before the
  // launcher receives it.
  const auto& first = state.generation.first_failure;
  const bool rank_was_first = first && follows_notice(state, first->exit);
  if (number == state.notice_signal && (!being_stopped(state) || rank_was_first))
    state.noticed = true;
}

void stop_by(JobState& state, int number) {
  state.phase = Phase::stopping;
  state.stop_signal = number;
  state.orders.stop = Poison{Rank{-1}, LossCause::aborted, static_cast<std::uint32_t>(number)};
  state.orders.stop_host = state.generation.placement.hosts.front().name;
}

/// Between two generations there is no rank that a signal could be passed to: the notice signal and
/// signals that end a program end the job.
void cancel_restart(JobState& state, int number) {
  const bool for_ranks = number == SIGUSR1 || number == SIGUSR2 || number == SIGPIPE;
  if (for_ranks && number != state.notice_signal) return;
  state.restart.cancelled_by = number;
  state.phase = Phase::finished;
  state.orders.finish = true;
}

void on(JobState& state, const SignalReceived& event) {
  if (state.phase == Phase::restarting) return cancel_restart(state, event.number);
  take_notice(state, event.number);
  if (event.number == SIGUSR1 || event.number == SIGUSR2) {
    if (!being_stopped(state)) state.orders.pass_signal = event.number;
    return;
  }
  const bool all_succeeded = state.generation.all_succeeded();
  // SIGPIPE says that the reader of the output is gone; nobody has asked for an end.
  if (event.number == SIGPIPE && (being_stopped(state) || all_succeeded)) return;
  state.interrupted = true;
  if (std::exchange(state.echo_due, false) && event.number == state.stop_signal) return;
  // A second request does not wait for the grace period. The first one does not either when every
  // rank has ended well and only descendants are left.
  if (being_stopped(state) || all_succeeded) {
    state.orders.kill = true;
    return;
  }
  stop_by(state, event.number);
}

/// Several agents may report the same signal; that is no second request.
void on(JobState& state, const AgentSignalled& event) {
  if (event.host >= state.generation.host_done.size()) return;
  if (state.phase == Phase::restarting) return cancel_restart(state, event.number);
  take_notice(state, event.number);
  state.interrupted = true;
  if (being_stopped(state) || state.generation.all_succeeded()) return;
  stop_by(state, event.number);
  state.asked_host = event.host;
  state.echo_due = true;
}

/// Ranks that are being stopped are not suspended: they have to end.
void on(JobState& state, const Suspended&) {
  if (!being_stopped(state)) state.orders.pass_signal = SIGSTOP;
}

void on(JobState& state, const Resumed&) {
  if (!being_stopped(state)) state.orders.pass_signal = SIGCONT;
}

void on(JobState& state, const StartTimedOut& event) {
  if (state.phase != Phase::starting) return;
  state.generation.bad_hosts = event.late;
  fail_job(state, {.kind = FailureKind::start_timeout, .error = {Errc::timed_out, event.where}});
}

void on(JobState& state, const PauseOver& event) {
  if (state.phase != Phase::restarting) return;
  auto& give_up_at = state.restart.give_up_at;
  if (!give_up_at) give_up_at = event.now + kHostsTimeout;
  state.orders.plan = true;
}

void give_up(JobState& state, const Error& error) {
  state.restart.given_up = error;
  state.phase = Phase::finished;
  state.orders.finish = true;
}

void on(JobState& state, const TimeLimitPassed&) {
  if (state.phase == Phase::restarting) {
    state.restart.out_of_time = true;
    return give_up(state,
                   {Errc::timed_out,
                    "not restarted: --timeout passed while the job waited for its next attempt"});
  }
  if (state.generation.all_succeeded()) return;
  fail_job(state, {.kind = FailureKind::time_limit});
}

void on(JobState& state, const PlanFailed& event) {
  if (state.phase != Phase::restarting) return;
  auto& restart = state.restart;
  if (restart.give_up_at && event.now >= *restart.give_up_at) {
    return give_up(state, {event.error.code,
                           fmt::format("given up waiting for hosts: {}", event.error.message)});
  }
  // A host that was lost and is back is as good as any other.
  state.orders.all_hosts_again = !std::exchange(restart.avoided, {}).empty();
  state.orders.pause = restart.give_up_at
                           ? std::min(kHostsPause, Duration(*restart.give_up_at - event.now))
                           : kHostsPause;
}

void on(JobState& state, const RestartFailed& event) {
  if (state.phase != Phase::restarting) return;
  give_up(state, {event.error.code,
                  fmt::format("the job could not be restarted: {}", event.error.message)});
}

void on(JobState& state, const GenerationPlanned& event) {
  if (state.phase != Phase::restarting) return;
  const Epoch epoch{state.generation.epoch.value() + 1};
  state.generation = make_generation(epoch, event.placement, event.this_machine);
  state.phase = Phase::starting;
  state.orders.begin_generation = true;
}

/// Between two generations only these events mean something; news of the old one come too late.
/// Agents that wait for the next one may still be asked to end, and must know of a suspension.
bool is_for_restarting(const JobEvent& event) {
  return std::holds_alternative<SignalReceived>(event) ||
         std::holds_alternative<AgentSignalled>(event) ||
         std::holds_alternative<Suspended>(event) || std::holds_alternative<Resumed>(event) ||
         std::holds_alternative<TimeLimitPassed>(event) ||
         std::holds_alternative<PauseOver>(event) || std::holds_alternative<PlanFailed>(event) ||
         std::holds_alternative<RestartFailed>(event) ||
         std::holds_alternative<GenerationPlanned>(event);
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

JobState initial_state(Generation first, int notice_signal, RestartPolicy policy) {
  JobState state;
  state.generation = std::move(first);
  state.notice_signal = notice_signal;
  state.policy = std::move(policy);
  return state;
}

JobState next(JobState state, const JobEvent& event) {
  state.orders = {};
  if (state.phase == Phase::finished) return state;
  if (state.phase == Phase::restarting && !is_for_restarting(event)) return state;
  std::visit([&state](const auto& e) { on(state, e); }, event);
  return state;
}

bool wants_another_run(const JobState& state) {
  if (const auto signal = state.restart.cancelled_by) return *signal == state.notice_signal;
  if (!state.noticed) return false;
  const auto& first = state.generation.first_failure;
  if (!first) return true;
  return (first->kind == FailureKind::signalled || first->kind == FailureKind::exited) &&
         follows_notice(state, first->exit);
}

int exit_code_of(const JobState& state) {
  if (wants_another_run(state)) return exit_code::kQueueAgain;
  if (const auto signal = state.restart.cancelled_by) return exit_code::kSignalBase + *signal;
  if (state.restart.out_of_time) return exit_code::kStartTimeout;
  if (state.generation.first_failure) return exit_code_of_failure(*state.generation.first_failure);
  if (state.stop_signal != 0) return exit_code::kSignalBase + state.stop_signal;
  return exit_code::kOk;
}

int exit_code_of_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) return exit_code::kSignalBase + WTERMSIG(wait_status);
  return WEXITSTATUS(wait_status);
}

}  // namespace horo::launcher
