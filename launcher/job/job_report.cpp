// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/job_report.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <sys/wait.h>

#include "base/exit_code.hpp"
#include "base/json.hpp"
#include "launcher/job/describe.hpp"

namespace horo::launcher {

namespace {

constexpr std::string_view kName = "horo: ";

/// Ranks that ended in the same way; the first failure is not among them.
struct Group {
  std::string what;
  std::vector<Rank> ranks;
  Duration least{};
  Duration most{};
};

std::string fate_text(const RankFate& fate) {
  switch (fate.phase) {
    case RankPhase::ended:
      if (fate.exit.wait_status == 0)
        return fate.after_failure ? "ended afterwards: exit code 0" : "had finished";
      return fmt::format("{}: {}", fate.after_failure ? "ended afterwards" : "ended",
                         describe(fate.exit));
    case RankPhase::lost:
      return "lost with the host";
    case RankPhase::waiting:
    case RankPhase::running:
    case RankPhase::not_started:
      break;
  }
  return "not started";
}

std::vector<Group> group_others(const JobState& state) {
  std::vector<Group> groups;
  for (std::size_t r = 0; r < state.generation.fates.size(); ++r) {
    const Rank rank{static_cast<int>(r)};
    if (state.generation.first_failure && state.generation.first_failure->rank == rank) continue;
    const auto what = fate_text(state.generation.fates[r]);
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.what == what; });
    const auto lived = state.generation.fates[r].exit.lived;
    if (group == groups.end()) group = groups.insert(groups.end(), Group{what, {}, lived, lived});
    group->ranks.push_back(rank);
    group->least = std::min(group->least, lived);
    group->most = std::max(group->most, lived);
  }
  return groups;
}

std::string ran_for(const Group& group) {
  if (group.most == Duration::zero()) return {};
  const auto least = describe(group.least);
  const auto most = describe(group.most);
  return least == most ? fmt::format(" after {}", most)
                       : fmt::format(" after {} to {}", least, most);
}

bool never_used(const JobState& state, std::size_t host) {
  const auto& ranks = state.generation.placement.hosts[host].ranks;
  return std::all_of(ranks.begin(), ranks.end(), [&](Rank rank) {
    return state.generation.fates[rank.index()].phase == RankPhase::not_started;
  });
}

std::string notice_text(const JobState& state) {
  return fmt::format("  notice: {}; exit code {} asks for the job to be queued again\n",
                     describe_signal(state.notice_signal), exit_code::kQueueAgain);
}

/// The first line of a job that no failure ended.
std::string stop_headline(const ReportInput& input) {
  const auto& state = input.state;
  if (state.stop_signal == 0) {
    return fmt::format("all ranks have ended after the notice of {}, {} after the start",
                       describe_signal(state.notice_signal), describe(input.elapsed));
  }
  if (state.stop_signal == SIGPIPE) {
    return fmt::format("stopped after {}: the reader of the output has closed the pipe (SIGPIPE)",
                       describe(input.elapsed));
  }
  const auto where = state.asked_host ? fmt::format(" to the agent on {}",
                                                    state.generation.host(*state.asked_host).name)
                                      : std::string();
  return fmt::format("stopped by {}{} after {}", describe_signal(state.stop_signal), where,
                     describe(input.elapsed));
}

std::string headline(const ReportInput& input) {
  const auto& state = input.state;
  if (!state.generation.first_failure) return stop_headline(input);
  const auto& failure = *state.generation.first_failure;
  const auto& host = state.generation.placement.hosts[failure.host].name;
  const auto who = failure.rank ? fmt::format("rank {} on {}", *failure.rank, host) : std::string();
  const auto* first = state.generation.fates.size() > 1 ? " first" : "";
  switch (failure.kind) {
    case FailureKind::exited:
    case FailureKind::signalled:
      return fmt::format("{} failed{}: {} after {}", who, first, describe(failure.exit),
                         describe(failure.exit.lived));
    case FailureKind::left:
      return fmt::format(
          "{} exited with 0 after {} while the others still needed it (it did not call "
          "horo_shutdown)",
          who, describe(failure.exit.lived));
    case FailureKind::not_spawned:
      return fmt::format("{} could not be started: {}", who, failure.error.message);
    case FailureKind::host_lost:
      if (never_used(state, failure.host))
        return fmt::format("host {} cannot be used: {}", host, failure.error.message);
      return fmt::format("host {} was lost after {}: {}", host, describe(input.elapsed),
                         failure.error.message);
    case FailureKind::start_timeout: {
      const auto missing = std::count_if(
          state.generation.fates.begin(), state.generation.fates.end(), [](const RankFate& f) {
            return f.phase == RankPhase::not_started || f.phase == RankPhase::waiting;
          });
      return fmt::format("{} of {} ranks were not started within --start-timeout {}{}{}", missing,
                         state.generation.fates.size(), describe(input.start_timeout),
                         failure.error.message.empty() ? "" : "; ", failure.error.message);
    }
    case FailureKind::time_limit:
      return fmt::format("the job was stopped: --timeout {} passed", describe(input.time_limit));
  }
  return {};
}

std::string_view kind_name(FailureKind kind) {
  switch (kind) {
    case FailureKind::exited:
      return "exited";
    case FailureKind::signalled:
      return "signalled";
    case FailureKind::left:
      return "left";
    case FailureKind::not_spawned:
      return "not_spawned";
    case FailureKind::host_lost:
      return "host_lost";
    case FailureKind::start_timeout:
      return "start_timeout";
    case FailureKind::time_limit:
      return "time_limit";
  }
  return "";
}

std::string_view phase_name(RankPhase phase) {
  switch (phase) {
    case RankPhase::waiting:
      return "not_started";
    case RankPhase::running:
      return "running";
    case RankPhase::ended:
      return "ended";
    case RankPhase::not_started:
      return "not_started";
    case RankPhase::lost:
      return "lost";
  }
  return "";
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string folder_of(const ReportInput& input, Rank rank) {
  return fmt::format("{}/rank.{:0{}}", input.output_directory, rank, input.rank_digits);
}

std::string timeline_text(const SavedTimeline& saved) {
  std::string text;
  if (saved.ranks != 0) {
    text += fmt::format("  timeline of {} {}: {} (horo timeline-view {})\n", saved.ranks,
                        saved.ranks == 1 ? "rank" : "ranks", saved.directory, saved.directory);
  }
  if (!saved.problem.empty())
    text += fmt::format("  timeline: could not be saved: {}\n", saved.problem);
  return text;
}

void write_first_failure(JsonWriter& json, const ReportInput& input) {
  json.key("first_failure");
  if (!input.state.generation.first_failure) {
    json.null();
    return;
  }
  const auto& failure = *input.state.generation.first_failure;
  json.begin_object()
      .key("kind")
      .value(kind_name(failure.kind))
      .key("text")
      .value(headline(input))
      .key("rank");
  if (failure.rank) {
    json.value(failure.rank->value());
  } else {
    json.null();
  }
  json.key("host").value(input.state.generation.placement.hosts[failure.host].name);
  if (failure.kind == FailureKind::exited || failure.kind == FailureKind::signalled ||
      failure.kind == FailureKind::left) {
    write_exit(json, failure.exit);
  }
  json.key("last_lines").begin_array();
  for (const auto& line : input.last_lines) json.value(line);
  json.end_array().end_object();
}

void write_earlier(JsonWriter& json, const std::vector<Attempt>& earlier) {
  json.key("earlier_attempts").begin_array();
  for (const auto& attempt : earlier) {
    json.begin_object().key("job_id").value(attempt.job_id);
    json.key("exit_code").value(attempt.exit_code).key("seconds").value(seconds(attempt.elapsed));
    json.key("failure").value(attempt.failure).end_object();
  }
  json.end_array();
}

void write_ranks(JsonWriter& json, const Generation& generation) {
  json.key("ranks").begin_array();
  for (std::size_t r = 0; r < generation.fates.size(); ++r) {
    const auto& fate = generation.fates[r];
    const Rank rank{static_cast<int>(r)};
    json.begin_object().key("rank").value(rank.value());
    json.key("host").value(generation.host(generation.host_of(rank)).name);
    json.key("state").value(phase_name(fate.phase));
    json.key("after_first_failure").value(fate.after_failure);
    if (fate.phase == RankPhase::ended) write_exit(json, fate.exit);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

Attempt summarize(const ReportInput& input) {
  return {.job_id = input.job_id,
          .failure = headline(input),
          .exit_code = exit_code_of(input.state),
          .elapsed = input.elapsed};
}

std::string end_report(const ReportInput& input) {
  const auto& state = input.state;
  std::string text;
  const bool again = wants_another_run(state);
  if (state.generation.first_failure || state.stop_signal != 0 || again) {
    text += fmt::format("{}{}\n", kName, headline(input));
    if (state.generation.first_failure && state.generation.first_failure->rank) {
      if (!input.last_lines.empty()) text += "  its last lines:\n";
      for (const auto& line : input.last_lines) text += fmt::format("    | {}\n", line);
    }
    for (const auto& group : group_others(state)) {
      text += fmt::format("  {} {}{}\n", describe(group.ranks), group.what, ran_for(group));
    }
    if (!input.output_directory.empty()) {
      text += state.generation.first_failure && state.generation.first_failure->rank
                  ? fmt::format("  output: {}, of all ranks: {}\n",
                                folder_of(input, *state.generation.first_failure->rank),
                                input.output_directory)
                  : fmt::format("  output: {}\n", input.output_directory);
    }
    text += timeline_text(input.timeline);
  }
  if (again) text += notice_text(state);
  if (!text.empty()) {
    for (std::size_t i = 0; i < input.earlier.size(); ++i)
      text += fmt::format("  attempt {} before: {}\n", i, input.earlier[i].failure);
  }
  if (state.generation.survivors != 0) {
    text += fmt::format("{}{} processes of the job could not be killed and are still there\n",
                        kName, state.generation.survivors);
  }
  return text;
}

std::string not_restarted_report(const JobState& state) {
  const auto& restart = state.restart;
  if (restart.given_up) return fmt::format("{}{}\n", kName, restart.given_up->message);
  if (!restart.cancelled_by) return {};
  auto text = fmt::format("{}not restarted: {} came while the job waited for its next attempt\n",
                          kName, describe_signal(*restart.cancelled_by));
  if (wants_another_run(state)) text += notice_text(state);
  return text;
}

std::string success_report(const ReportInput& input) {
  return fmt::format("{}{} of {} ranks ended well after {}; survivors: {}\n", kName,
                     input.state.generation.fates.size(), input.state.generation.fates.size(),
                     describe(input.elapsed), input.state.generation.survivors);
}

std::string json_report(const ReportInput& input) {
  const auto& state = input.state;
  JsonWriter json;
  json.begin_object();
  json.key("job_id").value(input.job_id).key("program").value(input.program);
  json.key("exit_code").value(exit_code_of(state));
  json.key("seconds").value(seconds(input.before + input.elapsed + input.after));
  json.key("survivors").value(state.generation.survivors).key("stop_signal");
  if (const int signal = state.restart.cancelled_by.value_or(state.stop_signal); signal != 0) {
    json.value(signal);
  } else {
    json.null();
  }
  json.key("timeline");
  if (input.timeline.ranks != 0) {
    json.value(input.timeline.directory);
  } else {
    json.null();
  }
  json.key("queue_again").value(wants_another_run(state));
  write_first_failure(json, input);
  json.key("restarts").value(static_cast<int>(input.earlier.size()));
  write_earlier(json, input.earlier);
  write_ranks(json, state.generation);
  json.end_object();
  return json.text() + "\n";
}

}  // namespace horo::launcher
