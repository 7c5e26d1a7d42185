// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/job_report.hpp"

#include <csignal>

#include <catch2/catch.hpp>

#include "launcher/job/describe.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;
using Catch::Contains;
using Catch::StartsWith;

namespace {

JobEvent ended(int rank, int status, Duration lived) {
  return RankEnded{{.rank = Rank{rank}, .wait_status = status, .lived = lived}};
}

JobState finished(int np, const std::vector<JobEvent>& events, int survivors = 0) {
  auto state = initial_state(
      make_generation(Epoch{1}, place(discovery::HostSet({{"node1", np}}), {.np = np}).value()));
  for (const auto& event : events) state = next(std::move(state), event);
  return next(std::move(state), HostFinished{0, survivors});
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

TEST_CASE("the report names the first failure before anything else") {
  const auto state = finished(4, {ended(2, SIGSEGV, 1240ms), ended(0, 1 << 8, 1250ms),
                                  ended(1, 1 << 8, 1260ms), ended(3, SIGTERM, 1300ms)});
  const auto text =
      end_report({.state = state, .elapsed = 2s, .last_lines = {"step 41", "step 42"}});
  CHECK(first_line(text) ==
        "horo: rank 2 on node1 failed first: killed by signal 11 (SIGSEGV) after 1.24 s");
  CHECK_THAT(text, Contains("  its last lines:\n    | step 41\n    | step 42\n"));
  CHECK_THAT(text,
             Contains("  ranks 0 and 1 ended afterwards: exit code 1 after 1.25 s to 1.26 s\n"));
  CHECK_THAT(text,
             Contains("  rank 3 ended afterwards: killed by signal 15 (SIGTERM) after 1.30 s\n"));
}

TEST_CASE("the report says how a rank ended") {
  RankExit exit{.rank = Rank{0}, .wait_status = SIGABRT | 0x80, .core_dumped = true};
  CHECK(describe(exit) == "killed by signal 6 (SIGABRT), core dumped");
  exit = {.rank = Rank{0}, .wait_status = SIGKILL, .oom_killed = true};
  CHECK_THAT(describe(exit), Contains("SIGKILL") && Contains("OOM"));
  exit = {.rank = Rank{0}, .wait_status = 3 << 8};
  CHECK(describe(exit) == "exit code 3");
  exit = {.rank = Rank{0}, .wait_status = SIGRTMIN + 3};
  CHECK_THAT(describe(exit), Contains(fmt::format("signal {}", SIGRTMIN + 3)));
}

TEST_CASE(
    "the report names the rank that left with code 0, not the rank that failed because of it") {
  const RankEnded left{{.rank = Rank{2}, .attached = true, .undetached = true, .lived = 1s}};
  const auto state = finished(3, {left, ended(0, 1 << 8, 1100ms), ended(1, 1 << 8, 1100ms)});
  CHECK(first_line(end_report({.state = state})) ==
        "horo: rank 2 on node1 exited with 0 after 1.00 s while the others still needed it (it did "
        "not call horo_shutdown)");
  CHECK_THAT(json_report({.state = state}),
             Contains(R"("kind": "left")") && Contains(R"("exit_code": 1)"));
}

TEST_CASE("the report of a one-rank job does not say 'first' and names the output folder") {
  const auto state = finished(1, {ended(0, 2 << 8, 12ms)});
  const auto text = end_report({.state = state, .output_directory = "logs", .rank_digits = 2});
  CHECK(first_line(text) == "horo: rank 0 on node1 failed: exit code 2 after 12 ms");
  CHECK_THAT(text, Contains("  output: logs/rank.00, of all ranks: logs\n"));
}

TEST_CASE("the report says where timelines were saved, or why they were not") {
  const auto state = finished(1, {ended(0, 2 << 8, 12ms)});
  CHECK_THAT(end_report({.state = state, .timeline = {.ranks = 1, .directory = "/tmp/t"}}),
             Contains("  timeline of 1 rank: /tmp/t (horo timeline-view /tmp/t)\n"));
  CHECK_THAT(end_report({.state = state, .timeline = {.problem = "/tmp/t: no space"}}),
             Contains("  timeline: could not be saved: /tmp/t: no space\n"));
  CHECK_THAT(json_report({.state = state, .timeline = {.ranks = 1, .directory = "/tmp/t"}}),
             Contains(R"("timeline": "/tmp/t")"));
}

TEST_CASE("a rank that finished before the failure is not reported as a consequence") {
  const auto state = finished(2, {ended(0, 0, 1s), ended(1, 1 << 8, 2s)});
  CHECK_THAT(end_report({.state = state}), Contains("rank 0 had finished after 1.00 s"));
}

TEST_CASE("the report of a missing command names the error once") {
  auto state = finished(2, {RankNotSpawned{Rank{0}, {Errc::not_found, "command 'x' not found"}}});
  const auto text = end_report({.state = state});
  CHECK(first_line(text) == "horo: rank 0 on node1 could not be started: command 'x' not found");
  CHECK_THAT(text, Contains("rank 1 not started"));
}

TEST_CASE("the reports of a stop, a time limit and a start timeout differ") {
  auto state = finished(1, {SignalReceived{SIGINT}, ended(0, SIGTERM, 3s)});
  CHECK(first_line(end_report({.state = state, .elapsed = 3s})) ==
        "horo: stopped by signal 2 (SIGINT) after 3.00 s");
  state = finished(1, {RankStarted{Rank{0}}, TimeLimitPassed{}, ended(0, SIGTERM, 3s)});
  CHECK(first_line(end_report({.state = state, .time_limit = 90s})) ==
        "horo: the job was stopped: --timeout 1 min 30 s passed");
  state = finished(3, {RankStarted{Rank{0}}, StartTimedOut{}, ended(0, SIGTERM, 3s)});
  CHECK(first_line(end_report({.state = state, .start_timeout = 30s})) ==
        "horo: 2 of 3 ranks were not started within --start-timeout 30.00 s");
}

TEST_CASE("a job that succeeds has no report, unless processes survived") {
  CHECK(end_report({.state = finished(1, {ended(0, 0, 1s)})}).empty());
  CHECK_THAT(end_report({.state = finished(1, {ended(0, 0, 1s)}, 2)}),
             Contains("2 processes of the job could not be killed"));
  CHECK_THAT(success_report({.state = finished(1, {ended(0, 0, 1s)}), .elapsed = 1s}),
             Contains("1 of 1 ranks ended well after 1.00 s; survivors: 0"));
}

TEST_CASE("the JSON report carries the exit code, the first failure and every rank") {
  const auto state = finished(2, {ended(1, SIGKILL, 500ms), ended(0, 3 << 8, 600ms)});
  const auto text =
      json_report({.state = state, .job_id = "j", .elapsed = 1500ms, .last_lines = {"a \"b\""}});
  CHECK_THAT(text, Contains(R"("exit_code": 137)") && Contains(R"("seconds": 1.5)") &&
                       Contains(R"("survivors": 0)"));
  CHECK_THAT(text, Contains(R"("kind": "signalled")") && Contains(R"("signal": 9)") &&
                       Contains(R"("a \"b\"")"));
  CHECK_THAT(text, Contains(R"("exit_code": 3)") && Contains(R"("after_first_failure": true)"));
  CHECK_THAT(json_report({.state = finished(1, {ended(0, 0, 1s)})}),
             Contains(R"("first_failure": null)"));
}

TEST_CASE("ranks and durations are written as a person would write them") {
  const auto ranks = [](std::vector<int> numbers) {
    std::vector<Rank> list;
    for (const int n : numbers) list.emplace_back(n);
    return describe(list);
  };
  CHECK(ranks({4}) == "rank 4");
  CHECK(ranks({0, 1}) == "ranks 0 and 1");
  CHECK(ranks({0, 2, 3, 4, 5, 9}) == "ranks 0, 2-5 and 9");
  CHECK(describe(Duration(0)) == "0 ms");
  CHECK(describe(Duration(999ms)) == "999 ms");
  CHECK(describe(Duration(59'990ms)) == "59.99 s");
  CHECK(describe(Duration(200s)) == "3 min 20 s");
  CHECK(describe(Duration(7500s)) == "2 h 5 min");
}

TEST_CASE("the report says that a job is to be queued again, and after which notice") {
  auto state = initial_state(
      make_generation(Epoch{1}, place(discovery::HostSet({{"node1", 1}}), {.np = 1}).value()),
      SIGUSR1);
  for (const JobEvent& event : {JobEvent{RankStarted{Rank{0}}}, JobEvent{SignalReceived{SIGUSR1}},
                                ended(0, 0, 2s), JobEvent{HostFinished{0, 0}}})
    state = next(std::move(state), event);
  const auto text = end_report({.state = state, .elapsed = 3s});
  CHECK(first_line(text) ==
        "horo: all ranks have ended after the notice of signal 10 (SIGUSR1), 3.00 s after the "
        "start");
  CHECK_THAT(text, Contains("exit code 75 asks for the job to be queued again"));
  CHECK_THAT(json_report({.state = state}), Contains("\"queue_again\": true"));
}
