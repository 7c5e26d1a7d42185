// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/elastic_report.hpp"

#include <csignal>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

const TimePoint kBegin{100s};

GenerationMember member(int worker) {
  return {.worker = worker, .host = 0};
}

/// A job on host a that began with workers 0 and 1 and lost the second one.
ElasticHistory history() {
  ElasticHistory made;
  MembershipState state(ElasticRules{});
  state.hosts.offer(discovery::HostSet({{.name = "a", .slots = 2}}));
  state.orders.start = {{.worker = 0, .host = 0, .slot = 0}, {.worker = 1, .host = 0, .slot = 1}};
  made.note(state, Ticked{}, kBegin);
  state.orders = {};
  made.note(state, WorkerStarted{0}, kBegin + 1s);
  made.note(state, WorkerStarted{1}, kBegin + 1s);
  state.orders.formed = FormedGeneration{.members = {member(0), member(1)}, .joined = {0, 1}};
  made.note(state, Ticked{}, kBegin + 2s);
  state.orders = {};
  made.note(state, WorkerEnded{{.rank = Rank{1}, .wait_status = SIGKILL, .lived = 5s}},
            kBegin + 6s);
  state.orders.formed = FormedGeneration{.generation = 2,
                                         .members = {member(0)},
                                         .survivors = 1,
                                         .left = {{.worker = 1, .why = "killed", .failed = true}},
                                         .since = kBegin + 6s};
  made.note(state, Ticked{}, kBegin + 6s + 250ms);
  return made;
}

}  // namespace

TEST_CASE("the history of an elastic job has a row per generation and per worker") {
  const auto made = history();
  REQUIRE(made.generations().size() == 2);
  CHECK_FALSE(made.generations()[0].new_ranks_after);
  CHECK(made.generations()[1].new_ranks_after == 250ms);
  CHECK(made.generations()[1].hosts == std::vector<std::string>{"a"});
  CHECK(made.workers().at(1).exit->wait_status == SIGKILL);
  CHECK_FALSE(made.workers().at(0).exit);
}

TEST_CASE("rank 0 of the current generation tells once how training goes on") {
  auto made = history();
  const elastic::TrainingResumed word{
      .worker = 0, .generation = 2, .stood_still_us = 57'000, .repeated = 1};
  CHECK(made.note({.worker = 1, .generation = 2}) == nullptr);
  CHECK(made.note({.worker = 0, .generation = 1}) == nullptr);
  const auto* row = made.note(word);
  REQUIRE(row != nullptr);
  CHECK(describe_resumed(*row) == "generation 2: training goes on after 57 ms; 1 step is repeated");
  CHECK(made.note(word) == nullptr);
  CHECK(ElasticHistory().note(word) == nullptr);
  const JobEnd well;
  CHECK_THAT(json_report({.end = well, .history = made}),
             Catch::Contains("\"stood_still_seconds\": 0.057") &&
                 Catch::Contains("\"repeated_steps\": 1"));
}

TEST_CASE("steps that are repeated are told where they are known") {
  for (const auto& [repeated, words] :
       {std::pair{-1, ""}, {0, "; no step is repeated"}, {3, "; 3 steps are repeated"}}) {
    auto made = history();
    const auto* row = made.note({.worker = 0, .generation = 2, .repeated = repeated});
    REQUIRE(row != nullptr);
    CHECK_THAT(describe_resumed(*row), Catch::EndsWith(std::string("goes on after 0 ms") + words));
  }
}

TEST_CASE("a lost agent takes the workers of its host that had not ended") {
  auto made = history();
  MembershipState state(ElasticRules{});
  state.hosts.offer(discovery::HostSet({{.name = "a", .slots = 2}}));
  made.note(state, AgentLost{0, {Errc::unavailable, "no heartbeat"}}, kBegin + 9s);
  CHECK(made.workers().at(0).lost == "no heartbeat");
  CHECK(made.workers().at(1).lost.empty());
}

TEST_CASE("a job that ended well has no report, and one that failed names the failure first") {
  const auto made = history();
  const JobEnd well;
  CHECK(end_report({.end = well, .history = made}).empty());
  const JobEnd bad{.exit_code = 137, .failure = "too few workers are left", .worker = 1};
  const auto text = end_report({.end = bad,
                                .history = made,
                                .elapsed = 7s,
                                .last_lines = {"boom"},
                                .output_directory = "logs",
                                .rank_digits = 2});
  CHECK(text ==
        "horo: too few workers are left after 7.00 s\n"
        "  the first to fail was worker 1 on a: killed by signal 9 (SIGKILL) after 5.00 s\n"
        "  its last lines:\n"
        "    | boom\n"
        "  output: logs/rank.01, of all workers: logs\n");
}

TEST_CASE("a job that a signal ended names the signal") {
  const auto made = history();
  const JobEnd end{.exit_code = 130};
  CHECK(end_report({.end = end, .history = made, .signal = SIGINT, .elapsed = 7s}) ==
        "horo: stopped by signal 2 (SIGINT) after 7.00 s\n");
}

TEST_CASE("the JSON report has the generations with their losses and their durations") {
  const auto made = history();
  const JobEnd end;
  const auto text = json_report({.end = end, .history = made, .begun = kBegin, .elapsed = 7s});
  CHECK_THAT(text, Catch::Contains("\"elastic\": true") || Catch::Contains("\"elastic\":true"));
  CHECK_THAT(text, Catch::Contains("\"new_ranks_after_seconds\": 0.25") ||
                       Catch::Contains("\"new_ranks_after_seconds\":0.25"));
  CHECK_THAT(text, Catch::Contains("\"why\"") && Catch::Contains("killed"));
}
