// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/stalls/stall_questions.hpp"

using namespace std::chrono_literals;
using namespace horo;
using namespace horo::runtime;

namespace {

MemberFacts member(int rank, ProcessState process = ProcessState::running) {
  return {.rank = Rank{rank}, .process = process, .idle = 64s, .waits_for = {}, .waits_in = {}};
}

Stalled tensor(const std::string& name, std::vector<std::size_t> missing,
               std::vector<std::size_t> undeclared = {}) {
  return {.name = name,
          .age = 61s,
          .missing = std::move(missing),
          .undeclared = std::move(undeclared),
          .group = {}};
}

}  // namespace

TEST_CASE("a stall is reported at the warning time, at twice and at four times that") {
  CHECK(stall_level(-5s, 60s) == 0);
  CHECK(stall_level(59s, 60s) == 0);
  CHECK(stall_level(60s, 60s) == 1);
  CHECK(stall_level(119s, 60s) == 1);
  CHECK(stall_level(120s, 60s) == 2);
  CHECK(stall_level(240s, 60s) == 3);
  for (int level = 0; level < 10; ++level) {
    const auto at = stall_threshold(level, 60s);
    CHECK(stall_level(at - 1ns, 60s) == level);
    CHECK(stall_level(at, 60s) == level + 1);
  }
  CHECK(stall_threshold(100, 2400h) == Duration::max());
}

TEST_CASE("a verdict says what a rank does instead of submitting") {
  const SetId world;
  CHECK(verdict(member(1), world) == "busy outside libhoro, which it last called 64 s ago");
  CHECK(verdict(member(1, ProcessState::sleeping), world) ==
        "asleep outside libhoro, which it last called 64 s ago");
  CHECK(verdict(member(1, ProcessState::unknown), world) ==
        "outside libhoro, which it last called 64 s ago");
  CHECK(verdict(member(1, ProcessState::stopped), world) == "stopped, by SIGSTOP or Ctrl-Z");
  CHECK(verdict(member(1, ProcessState::traced), world) == "held by a debugger");
  CHECK(verdict(member(1, ProcessState::blocked), world) ==
        "in uninterruptible sleep, as on a device or file system that hangs");
  CHECK(verdict(member(1, ProcessState::gone), world) == "has exited");
  auto one = member(1);
  one.idle = Duration::zero();
  CHECK(verdict(one, world) == "busy outside libhoro, not called since horo_init");
  one.waits_for = "b";
  CHECK(verdict(one, world) == "waits for tensor 'b'");
  one.waits_in = SetId{3};
  CHECK(verdict(one, world) == "waits for tensor 'b' of process set 3");
  one.process = ProcessState::stopped;
  CHECK(verdict(one, world) == "stopped, by SIGSTOP or Ctrl-Z");
  one.state = RankState::leaving;
  one.process = ProcessState::running;
  CHECK(verdict(one, world) == "is leaving the job");
  one.state = RankState::detached;
  CHECK(verdict(one, world) == "has left the job");
  one.state = RankState::dead;
  CHECK(verdict(one, world) == "has exited");
  one.state = RankState::absent;
  CHECK(verdict(one, world) == "has not called horo_init");
}

TEST_CASE("tensors that wait for the same ranks share a line") {
  StallFacts facts{.set = {}, .members = {member(0), member(1), member(2)}, .tensors = {}};
  for (int i = 0; i < 8; ++i) {
    facts.tensors.push_back(tensor("t" + std::to_string(i), {1}));
    facts.tensors.back().age = std::chrono::seconds(60 + i);
  }
  CHECK(
      stall_lines(facts) ==
      std::vector<std::string>{"tensors 't0', 't1', 't2', 't3', 't4', 't5' and 2 more have waited "
                               "67 s for rank 1 (busy outside libhoro, which it last called 64 s "
                               "ago)"});

  facts.set = SetId{2};
  facts.tensors = {tensor("a", {1, 2}, {2}), tensor("b", {1}), tensor("c", {1, 2}, {2})};
  facts.members[1].process = ProcessState::stopped;
  facts.members[2].waits_for = "z";
  facts.members[2].waits_in = SetId{2};
  CHECK(stall_lines(facts) ==
        std::vector<std::string>{
            "process set 2: tensors 'a', 'c' have waited 61 s for rank 1 (stopped, by SIGSTOP or "
            "Ctrl-Z), rank 2 (waits for tensor 'z'; never declared them)",
            "process set 2: tensor 'b' has waited 61 s for rank 1 (stopped, by SIGSTOP or "
            "Ctrl-Z)"});
}

TEST_CASE("a report tells tensors of incomplete groups from entries that do not move") {
  StallFacts facts{.set = {}, .members = {member(0), member(1)}, .tensors = {tensor("a", {1})}};
  facts.members[1].process = ProcessState::stopped;
  facts.tensors[0].group = "g";
  CHECK(stall_lines(facts).front() ==
        "tensor 'a' has waited 61 s for the other tensors of group 'g', which wait for rank 1 "
        "(stopped, by SIGSTOP or Ctrl-Z)");
  facts.tensors[0].missing.clear();
  CHECK(stall_lines(facts).front() ==
        "tensor 'a' has waited 61 s for the other tensors of group 'g', which no rank has "
        "submitted");
  facts.tensors = {tensor("a", {1})};
  facts.tensors[0].under_way = true;
  CHECK(stall_lines(facts).front() ==
        "tensor 'a' has not moved for 61 s and needs the share of rank 1 (stopped, by SIGSTOP "
        "or Ctrl-Z)");
}

TEST_CASE("a report about many ranks and groups names some and counts the rest") {
  StallFacts facts;
  for (int r = 0; r < 20; ++r) facts.members.push_back(member(r, ProcessState::gone));
  std::vector<std::size_t> all;
  for (std::size_t r = 1; r < 20; ++r) all.push_back(r);
  facts.tensors = {tensor("a", all)};
  CHECK_THAT(stall_lines(facts).front(), Catch::EndsWith("rank 8 (has exited) and 11 more ranks"));
  facts.tensors.clear();
  for (std::size_t r = 0; r < 20; ++r) facts.tensors.push_back(tensor("t", {r}));
  const auto lines = stall_lines(facts);
  CHECK(lines.size() == 4);
  CHECK_THAT(lines.back(), Catch::EndsWith("; and 16 more tensors wait for other ranks"));
}

TEST_CASE(
    "answers of several hosts become one line without the tensors that have moved meanwhile") {
  const tree::StallQuestion question{.set = SetId{7},
                                     .least_ms = 45'000,
                                     .more = 9,
                                     .names = {"a", "b", "c", "gone on", "its turn"}};
  tree::StallAnswer answer{.lacking = std::vector<tree::TensorStall>(5)};
  for (std::size_t i = 0; i < 3; ++i) {
    answer.lacking[i] = {.waited_ms = 60'000, .missing = tree::RankRanges::of(4, 10)};
    answer.lacking[i].undeclared.add(Rank{5});
  }
  answer.lacking[3].waited_ms = 100;
  answer.lacking[4].waited_ms = 60'000;  // All ranks have submitted it.
  answer.verdicts = {{.rank = Rank{4}, .host = "node2", .text = "stopped"},
                     {.rank = Rank{5}, .host = "node3", .text = "busy"}};
  const auto lines = stall_lines(facts_of(SetId{}, question, answer));
  CHECK(lines == std::vector<std::string>{
                     "tensors 'a', 'b', 'c' have waited 60 s for rank 4 on node2 (stopped), rank 5 "
                     "on node3 (busy; never declared them) and 8 more ranks; and 9 more tensors "
                     "wait"});
}

TEST_CASE("the state of a process is read from /proc") {
  CHECK(parse_process_state("12 (a) b) R) S 1 2") == ProcessState::sleeping);
  CHECK(parse_process_state("12 (a) T 1 2") == ProcessState::stopped);
  CHECK(parse_process_state("12 (a) t 1 2") == ProcessState::traced);
  CHECK(parse_process_state("12 (a) D 1 2") == ProcessState::blocked);
  CHECK(parse_process_state("12 (a) Z 1 2") == ProcessState::gone);
  CHECK(parse_process_state("12 (a) R 1 2") == ProcessState::running);
  for (const auto* text : {"", "12", "12 (a", "12 (a)", "12 (a) ", "12 (a) ? 1"})
    CHECK(parse_process_state(text) == ProcessState::unknown);
  CHECK(process_state(static_cast<std::uint32_t>(getpid())) == ProcessState::running);
  CHECK(process_state(0) == ProcessState::unknown);
}
