// SPDX-License-Identifier: Apache-2.0
// An agent with one assignment after the other: nothing of one is left in the next.
#include "agent_job.hpp"

#include <csignal>
#include <fstream>
#include <set>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "launcher/ranks/rank_descriptors.hpp"

using namespace horo;
using namespace horo::test;

namespace {

launcher::AgentSpec assignment(std::uint64_t epoch, std::vector<std::string> actions,
                               Duration stay = 100s) {
  actions.insert(actions.begin(), actor());
  auto spec = spec_for(2, std::move(actions));
  spec.epoch = Epoch{epoch};
  spec.stay = stay;
  return spec;
}

/// The ranks may have ended already, so they do not lead to their agent.
int child_named(int parent, const std::string& name) {
  for (const int pid : children_of(parent)) {
    std::string found;
    std::getline(std::ifstream(fmt::format("/proc/{}/comm", pid)), found);
    if (found == name) return pid;
  }
  FAIL("process " << parent << " has no child '" << name << "'");
  return 0;
}

/// A job whose first assignment has ended, and whose agent waits. Ranks that wait are killed once
/// the agent and its guard are known.
struct Waiting {
  std::unique_ptr<Loop> loop = make_loop();
  Job job{*loop};
  int agent = 0;
  int guard = 0;

  explicit Waiting(std::vector<std::string> actions, Duration stay = 100s) {
    const bool ranks_wait = actions.back() == "wait";
    REQUIRE(job.start(assignment(1, std::move(actions), stay)));
    // A rank that dies at once may end the other before that has started.
    REQUIRE(job.run_until([&] { return job.pids.size() == 2 || job.waits == 1; }));
    guard = child_named(getpid(), "job-guard");
    agent = child_named(guard, "horo-agent");
    if (ranks_wait) job.agent().kill();
    REQUIRE(job.run_until([&] { return job.waits == 1; }));
    REQUIRE(job.waits == 1);
  }

  /// Gives the next assignment, and forgets the events of the last one.
  bool assign(launcher::AgentSpec spec) {
    job.pids.clear();
    job.out.clear();
    job.err.clear();
    job.exits.clear();
    job.control_group.reset();
    return job.assign(std::move(spec));
  }

  void expect_gone() {
    CHECK(eventually([&] { return !alive(agent) && !alive(guard); }));
    CHECK(living_with(job.marker()).empty());
  }
};

/// The memory files that a process has open, by device and inode.
std::set<std::string> memory_of(int pid, int number) {
  std::set<std::string> found;

  struct stat about {};

  if (stat(fmt::format("/proc/{}/fd/{}", pid, number).c_str(), &about) == 0)
    found.insert(fmt::format("{}:{}", about.st_dev, about.st_ino));
  return found;
}

}  // namespace

TEST_CASE("an agent takes a further assignment: same agent, other ranks, new board and timeline") {
  Waiting world({"say=first"});
  CHECK(world.job.out[Rank{1}] == "first");
  const auto old_pids = world.job.pids;
  REQUIRE(world.assign(assignment(2, {"say=second", "wait"})));
  REQUIRE(world.job.run_until([&] { return world.job.out.size() == 2; }));
  CHECK(world.job.out[Rank{0}] == "second");
  for (const auto& [rank, pid] : world.job.pids) {
    CHECK(parent_of(pid) == world.agent);
    CHECK(pid != old_pids.at(rank));
    for (const int number : {launcher::kBoardDescriptor, launcher::kTimelineDescriptor})
      CHECK(memory_of(pid, number) == memory_of(world.agent, number));
  }
  REQUIRE(world.job.control_group);
  world.job.agent().kill();
  REQUIRE(world.job.run_until([&] { return world.job.waits == 2; }));
  world.job.agent().release();
  REQUIRE(world.job.run());
  CHECK(world.job.survivors == 0);
  world.expect_gone();
}

TEST_CASE("while an agent waits, no process, board or timeline of its ranks is left") {
  Waiting world({"ignore-term", "fork", "escape", "say=up", "die=9"});
  CHECK(living_with(world.job.marker()).empty());
  CHECK(children_of(world.agent).empty());

  struct stat nothing {};

  REQUIRE(stat("/dev/null", &nothing) == 0);
  for (const int number : {launcher::kBoardDescriptor, launcher::kTimelineDescriptor}) {
    CHECK(eventually([&] {
      struct stat about {};

      return stat(fmt::format("/proc/{}/fd/{}", world.agent, number).c_str(), &about) == 0 &&
             about.st_rdev == nothing.st_rdev;
    }));
  }
  REQUIRE(world.assign(assignment(2, {"say=again"})));
  REQUIRE(world.job.run_until([&] { return world.job.waits == 2; }));
  CHECK(world.job.out[Rank{0}] == "again");
}

TEST_CASE("a failure in one assignment does not poison the next") {
  Waiting world({"only=1", "exit=7", "attach", "await-poison", "ack", "detach"});
  REQUIRE(world.assign(assignment(2, {"attach", "say=fine", "detach"})));
  REQUIRE(world.job.run_until([&] { return world.job.waits == 2; }));
  REQUIRE(world.job.exits.size() == 2);
  for (const auto& [rank, exit] : world.job.exits) CHECK(exit.wait_status == 0);
}

TEST_CASE("standard input of one assignment does not reach the next") {
  auto loop = make_loop();
  Job job(*loop);
  auto first = assignment(1, {"exit=0"});
  first.stdin_policy = launcher::StdinPolicy::rank0;
  REQUIRE(job.start(first));
  job.agent().feed_stdin("old");
  REQUIRE(job.run_until([&] { return job.waits == 1; }));
  job.agent().feed_stdin("late");
  job.agent().close_stdin();
  auto second = assignment(2, {"only=0", "echo"});
  second.stdin_policy = launcher::StdinPolicy::rank0;
  job.out.clear();
  REQUIRE(job.assign(std::move(second)));
  job.agent().feed_stdin("new");
  job.agent().close_stdin();
  REQUIRE(job.run_until([&] { return job.waits == 2; }));
  CHECK(job.out[Rank{0}] == "new");
}

TEST_CASE("ten assignments leave the agent with as many descriptors as two") {
  Waiting world({"say=up"});
  const auto descriptors = [&] {
    int count = 0;
    for (int number = 0; number < 256; ++number)
      count += memory_of(world.agent, number).empty() ? 0 : 1;
    return count;
  };
  REQUIRE(world.assign(assignment(2, {"die=9"})));
  REQUIRE(world.job.run_until([&] { return world.job.waits == 2; }));
  const int before = descriptors();
  for (std::uint64_t epoch = 3; epoch <= 10; ++epoch) {
    REQUIRE(world.assign(assignment(epoch, {"die=9"})));
    REQUIRE(world.job.run_until([&] { return world.job.waits == static_cast<int>(epoch); }));
  }
  CHECK(eventually([&] { return descriptors() <= before; }));
}

TEST_CASE("an agent that gets no further assignment ends at its deadline, with the reason") {
  Waiting world({"wait"}, 1ms);
  REQUIRE(world.job.run());
  REQUIRE(world.job.lost);
  CHECK_THAT(world.job.lost->message, Catch::Contains("gave no further ranks within 0.001 s"));
  CHECK_FALSE(world.job.assign(assignment(2, {"say=up"})));
  world.expect_gone();
}

TEST_CASE("an agent that waits ends when its launcher hangs up") {
  Waiting world({"say=up"});
  world.job.drop_agent();
  world.expect_gone();
}

TEST_CASE("an agent that is killed while it waits is lost and takes no assignment") {
  Waiting world({"say=up"});
  SECTION("the agent") {
    kill(world.agent, SIGKILL);
  }
  SECTION("its guard") {
    kill(world.guard, SIGKILL);
  }
  SECTION("by SIGTERM") {
    kill(world.guard, SIGTERM);
  }
  REQUIRE(world.job.run());
  CHECK(world.job.lost);
  CHECK_FALSE(world.job.assign(assignment(2, {"say=up"})));
  world.expect_gone();
}

TEST_CASE("an agent that is killed during the handover is lost, with whatever it has started") {
  Waiting world({"say=up"});
  kill(world.guard, SIGSTOP);
  kill(world.agent, SIGSTOP);
  REQUIRE(world.assign(assignment(2, {"ignore-term", "fork", "escape", "wait"})));
  kill(world.agent, SIGKILL);
  kill(world.guard, SIGCONT);
  REQUIRE(world.job.run());
  CHECK(world.job.lost);
  CHECK_FALSE(world.job.control_group);
  world.expect_gone();
}

TEST_CASE("an epoch that has been used ends the agent instead of starting ranks") {
  Waiting world({"say=up"});
  REQUIRE(world.assign(assignment(1, {"say=again"})));
  REQUIRE(world.job.run());
  REQUIRE(world.job.lost);
  CHECK_THAT(world.job.lost->message, Catch::Contains("gave assignment 1 after 1"));
  CHECK(world.job.out.empty());
}
