// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/membership_end.hpp"

#include <algorithm>
#include <utility>

#include "base/exit_code.hpp"
#include "launcher/elastic/membership_forming.hpp"
#include "launcher/elastic/membership_losses.hpp"
#include "launcher/elastic/membership_words.hpp"
#include "launcher/job/describe.hpp"

namespace horo::launcher {

namespace {

bool is_over(const MembershipState& state) {
  return state.phase == MembershipPhase::stopping || state.phase == MembershipPhase::finished;
}

void stop_all(MembershipState& state, const Poison& cause, const std::string& host,
              const std::string& why, TimePoint now) {
  for (auto& worker : state.workers.all()) {
    if (worker.phase != WorkerPhase::called) continue;
    refuse(state, worker, why);
    worker.phase = WorkerPhase::ending;
  }
  state.phase = MembershipPhase::stopping;
  state.orders.stop = cause;
  state.orders.stop_host = host;
  state.stop_by = now + state.rules.stop_timeout;
}

}  // namespace

void fail_job(MembershipState& state, const JobFailure& failure, TimePoint now) {
  if (is_over(state)) return;
  const auto& first = state.verdict.first_failed;
  if (!state.verdict.failure) {
    state.verdict.failure = {.exit_code = failure.exit_code,
                             .failure = failure.text,
                             .worker = first ? first->worker : std::nullopt,
                             .cause = failure.end_cause};
    if (first && failure.end_cause == EndCause::shortage) {
      state.verdict.failure->cause = first->cause;
      state.verdict.failure->wait_status = first->wait_status;
    }
  }
  stop_all(state, {Rank{-1}, failure.cause, 0}, failure.host, "the job failed: " + failure.text,
           now);
}

void stop_by_signal(MembershipState& state, int number, const std::string& host, TimePoint now) {
  if (is_over(state)) return;
  state.verdict.signal = number;
  stop_all(state, {Rank{-1}, LossCause::aborted, static_cast<std::uint32_t>(number)}, host,
           fmt::format("the job is being stopped by signal {}", number), now);
}

void begin_ending(MembershipState& state, const ElasticWorker& first, TimePoint now) {
  const auto why = state.verdict.ending = fmt::format(
      "{} ended with code 0, so the program is ending, and no further "
      "generation is formed",
      named(state, first));
  // A member that failed since the last generation was formed has not done its part.
  const auto& left = state.round.left;
  if (state.verdict.first_failed &&
      std::any_of(left.begin(), left.end(), [](const auto& member) { return member.failed; }))
    note_late_failure(state, *state.verdict.first_failed);
  state.phase = MembershipPhase::ending;
  state.round = {};
  if (state.rules.end_timeout) state.stop_by = now + *state.rules.end_timeout;
  for (auto& worker : state.workers.all()) {
    if (!worker.counts()) continue;
    worker.due.reset();
    worker.leave_by.reset();
    const bool takes_part = state.generation == 0 || worker.rank;
    const bool called = worker.phase == WorkerPhase::called;
    if (takes_part && called) {
      refuse(state, worker, why);
      worker.phase = WorkerPhase::member;
    }
    if (takes_part) continue;
    if (called) {
      remove_worker(state, worker, why, now);
    } else {
      end_worker(state, worker, why);
    }
  }
}

void note_late_failure(MembershipState& state, const JobEnd& end) {
  if (!state.verdict.failure) state.verdict.failure = end;
}

namespace {

/// The exit code of a job whose workers failed: the first one's, or `otherwise`.
int worker_code(const MembershipState& state, int otherwise) {
  const auto& first = state.verdict.first_failed;
  return first ? first->exit_code : otherwise;
}

std::string with_cause(const MembershipState& state, std::string text) {
  const auto& first = state.verdict.first_failed;
  if (first) return fmt::format("{}: {}", first->failure, text);
  const auto& left = state.round.left;
  return left.empty() ? text
                      : fmt::format("worker {}: {}: {}", left.back().worker, left.back().why, text);
}

/// A generation without a member of the one before would begin the training anew.
bool state_is_lost(MembershipState& state) {
  if (state.generation == 0) return false;
  const auto members = state.workers.members();
  const bool kept = std::any_of(members.begin(), members.end(), [](const auto* worker) {
    return worker->phase == WorkerPhase::member || worker->entered > 0;
  });
  return !kept && (members.empty() || state.state_exists);
}

/// The most workers that hosts which do not change can still have together.
int most_workers(const MembershipState& state) {
  const auto& hosts = state.hosts.all();
  auto room = static_cast<long long>(state.hosts.room());
  for (const auto& host : hosts) {
    const bool returns = host.back_at && host.back_at < state.round.enough_by;
    if (host.use != HostUse::usable && returns) room += host.slots;
  }
  for (const auto& worker : state.workers.all()) {
    const auto& host = hosts[worker.host];
    if (worker.counts() && (host.use != HostUse::usable || host.slots == 0)) ++room;
  }
  return static_cast<int>(std::min<long long>(room, kMaxRanks));
}

/// The hosts do not change, and those that are left are too few.
bool is_short_for_good(const MembershipState& state) {
  return state.rules.hosts_are_fixed && most_workers(state) < state.rules.min_np;
}

/// Every host is out, no worker is on its way, and no host comes back in time.
bool all_hosts_are_out(const MembershipState& state) {
  const auto& hosts = state.hosts.all();
  bool any_out = false;
  for (const auto& host : hosts) {
    if (host.room() > 0) return false;
    any_out |= host.slots > 0;
    if (host.slots > 0 && host.back_at && host.back_at < state.round.enough_by) return false;
  }
  const auto& workers = state.workers.all();
  return any_out && std::none_of(workers.begin(), workers.end(), [](const auto& worker) {
           return worker.counts() && worker.phase != WorkerPhase::called;
         });
}

void judge_regrouping(MembershipState& state, TimePoint now) {
  const auto& rules = state.rules;
  if (no_more_resets(state)) {
    const auto& left = state.round.left;
    return fail_job(
        state,
        {.text = with_cause(
             state,
             fmt::format("the job needs another generation{}, but --reset-limit {} "
                         "allows no more; raise it, or leave it out",
                         left.empty() ? "" : fmt::format(" without worker {}", left.front().worker),
                         *rules.reset_limit)),
         .exit_code = worker_code(state, exit_code::kFailure)},
        now);
  }
  const auto members = state.workers.members();
  const bool met = std::any_of(members.begin(), members.end(), [&state](const auto* worker) {
    return worker->entered == state.generation || worker->phase == WorkerPhase::member;
  });
  if (met || state.unmet < 2 || now < *state.unmet_since + rules.elastic_timeout) return;
  fail_job(state,
           {.text = fmt::format("the workers could not meet in any of the last {} generations, "
                                "for {}; can the hosts reach each other?",
                                state.unmet + 1, describe(now - *state.unmet_since)),
            .exit_code = exit_code::kStartTimeout},
           now);
}

/// A signal told every host that has workers to go, and no other host is there.
std::optional<std::size_t> all_signalled(const MembershipState& state) {
  if (state.hosts.room() > 0) return std::nullopt;
  std::optional<std::size_t> found;
  for (const auto& worker : state.workers.all()) {
    if (!worker.counts()) continue;
    const auto& host = state.hosts.at(worker.host);
    if (host.use != HostUse::leaving || host.signal == 0) return std::nullopt;
    found = worker.host;
  }
  return found;
}

}  // namespace

void judge(MembershipState& state, TimePoint now) {
  if (const auto host = all_signalled(state)) {
    const auto& asked = state.hosts.at(*host);
    state.echo_due = true;
    return stop_by_signal(state, asked.signal, asked.name, now);
  }
  if (state_is_lost(state)) {
    return fail_job(state,
                    {.text = with_cause(state, "no worker is left that has the training's state"),
                     .exit_code = worker_code(state, exit_code::kFailure)},
                    now);
  }
  if (state.phase == MembershipPhase::regrouping) judge_regrouping(state, now);
}

namespace {

/// No worker can come any more.
void fail_short(MembershipState& state, bool all_out, TimePoint now) {
  const auto text =
      all_out ? fmt::format("no host is left that could be used: {}", describe_hosts_out(state))
              : fmt::format(
                    "--min-np asks for {} ranks, and the hosts, which do not "
                    "change, have no room for them: {}; lower --min-np or "
                    "give more hosts",
                    state.rules.min_np, describe_offer(state));
  fail_job(state,
           {.text = with_cause(state, text), .exit_code = worker_code(state, exit_code::kHostLost)},
           now);
}

}  // namespace

void judge_shortage(MembershipState& state, TimePoint now) {
  if (state.phase == MembershipPhase::running) return;
  const bool seeks = state.phase == MembershipPhase::seeking;
  const bool out = state.hosts.offered_yet() && all_hosts_are_out(state);
  const bool few = state.hosts.offered_yet() && is_short_for_good(state);
  if (!seeks && !all_have_called(state, now)) {
    if (state.phase == MembershipPhase::regrouping) return;
    if (now < state.round.enough_by && !out && !few) return;
  }
  if (out || few) return fail_short(state, out, now);
  if (now < state.round.enough_by) return;
  const auto wanted = seeks ? fmt::format("--min-np asks for {} slots, and {}", state.rules.min_np,
                                          describe_offer(state))
                            : describe_shortage(state);
  fail_job(state,
           {.text = with_cause(state, fmt::format("given up waiting for workers after {}: {}; add "
                                                  "hosts, lower --min-np or raise "
                                                  "--elastic-timeout",
                                                  describe(state.rules.elastic_timeout), wanted)),
            .exit_code = exit_code::kStartTimeout},
           now);
}

void close_hosts(MembershipState& state) {
  const auto living = state.workers.living_by_host(state.hosts.all().size());
  for (std::size_t i = 0; i < living.size(); ++i) {
    auto& host = state.hosts.at(i);
    const bool needed = state.phase != MembershipPhase::ending && host.room() > 0;
    if (host.agent != AgentPhase::running || living[i] > 0 || needed) continue;
    host.agent = AgentPhase::closing;
    state.orders.close.push_back(i);
  }
}

namespace {

bool agents_left(const MembershipState& state) {
  const auto& hosts = state.hosts.all();
  return std::any_of(hosts.begin(), hosts.end(),
                     [](const auto& host) { return host.agent != AgentPhase::none; });
}

void finish(MembershipState& state) {
  JobEnd end;
  if (state.verdict.signal != 0) end.exit_code = exit_code::kSignalBase + state.verdict.signal;
  if (state.verdict.failure) end = *state.verdict.failure;
  state.phase = MembershipPhase::finished;
  state.stop_by.reset();
  state.orders.finish = std::move(end);
}

void settle_ending(MembershipState& state, TimePoint now) {
  close_hosts(state);
  if (state.workers.living() == 0) {
    if (!state.all_ended) state.stop_by = now + state.rules.close_timeout;
    state.all_ended = true;
    if (now >= state.stop_by) finish(state);
    return;
  }
  std::vector<const ElasticWorker*> living;
  bool all_told = true;
  for (const auto& worker : state.workers.all()) {
    if (!worker.living()) continue;
    living.push_back(&worker);
    all_told = all_told && worker.phase == WorkerPhase::ending;
  }
  // The agents kill what they were told to end. A process that the system cannot kill has no part
  // in the program's result.
  if (all_told && !state.stop_by) state.stop_by = now + state.rules.stop_timeout;
  if (!state.stop_by || now < state.stop_by) return;
  const auto names = describe_workers(state, living);
  if (all_told) {
    state.orders.changes.push_back(
        fmt::format("{} could not be ended; the job does not wait any longer", names));
    return stop_all(state, {.cause = LossCause::aborted}, "", "the job is over", now);
  }
  fail_job(state,
           {.text = fmt::format("{} did not end within {} after the first worker had ended", names,
                                describe(*state.rules.end_timeout)),
            .exit_code = exit_code::kStartTimeout},
           now);
}

}  // namespace

void settle_end(MembershipState& state, TimePoint now) {
  if (state.phase == MembershipPhase::ending) settle_ending(state, now);
  if (is_over(state) && state.orders.finish) return;
  const bool stopping = state.phase == MembershipPhase::stopping;
  if (stopping && now >= state.stop_by && agents_left(state)) {
    if (state.killed) return finish(state);
    state.killed = true;
    state.orders.kill = true;
    state.stop_by = now + state.rules.close_timeout;
  }
  const bool idle = stopping || state.workers.living() == 0;
  if (idle && !agents_left(state)) finish(state);
}

}  // namespace horo::launcher
