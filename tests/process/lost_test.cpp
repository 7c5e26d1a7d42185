// SPDX-License-Identifier: Apache-2.0
// kill -9 of the launcher and of either half of the agent: nothing survives.
#include "agent_job.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::test;

namespace {

bool exists(const std::string& path) {
  return !path.empty() && access(path.c_str(), F_OK) == 0;
}

std::vector<std::string> stubborn() {
  return {actor(), "ignore-term", "fork", "escape", "say=up", "wait"};
}

/// A job of two ranks that has started, and the pair that supervises it.
struct Running {
  std::unique_ptr<Loop> loop = make_loop();
  Job job{*loop};
  int agent = 0;
  int guard = 0;

  explicit Running(std::vector<std::string> command = stubborn()) {
    REQUIRE(job.start(spec_for(2, std::move(command))));
    REQUIRE(job.run_until([&] { return job.out.size() == 2; }));
    agent = parent_of(job.pids.at(Rank{0}));
    guard = parent_of(agent);
    REQUIRE(parent_of(guard) == getpid());
  }

  /// Told as lost, and at that moment nothing of it lives.
  void expect_lost(const std::string& words) {
    REQUIRE(job.run());
    CHECK(living_with(job.marker()).empty());
    REQUIRE(job.lost.has_value());
    CHECK_THAT(job.lost->message, Catch::Contains(words));
    CHECK_THAT(job.lost->message, Catch::Contains("'testhost'"));
    // A process closes its socket a little before it is gone.
    CHECK(eventually([&] { return !alive(agent) && !alive(guard); }));
    CHECK(eventually([&] { return !exists(job.control_group->path); }));
  }
};

/// A launcher of `ranks` ranks in a process of its own; all have said something.
struct DrivenJob {
  pid_t launcher = 0;
  std::vector<std::string> said;  ///< By rank.
  std::string group;              ///< Their control group; empty: none.
  std::string marker;

  DrivenJob(int ranks, std::vector<std::string> words) {
    std::array<int, 2> pipe{};
    REQUIRE(pipe2(pipe.data(), O_CLOEXEC) == 0);
    words.insert(words.begin(), {HORO_TEST_DRIVER, std::to_string(ranks)});
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    launcher = fork();
    REQUIRE(launcher >= 0);
    if (launcher == 0) {
      dup2(pipe[1], STDOUT_FILENO);
      execv(arguments.front(), arguments.data());
      _exit(127);
    }
    close(pipe[1]);
    FILE* stream = fdopen(pipe[0], "r");
    REQUIRE(next_line(stream) == "ready");
    for (int i = 0; i < ranks; ++i) said.push_back(next_line(stream));
    group = next_line(stream).substr(std::string_view("group ").size());
    marker = next_line(stream);
    std::fclose(stream);
  }

  static std::string next_line(FILE* stream) {
    std::string line;
    for (int c = 0; (c = std::fgetc(stream)) != '\n';) {
      REQUIRE(c != EOF);
      line += static_cast<char>(c);
    }
    return line;
  }
};

}  // namespace

TEST_CASE("the job of the tests below has all the processes that it should have") {
  const Running running;
  CHECK(living_with(running.job.marker()).size() == 6);
}

TEST_CASE("when the agent is killed, the guard kills what is left") {
  Running running;
  kill(running.agent, SIGKILL);
  running.expect_lost("was lost");
}

TEST_CASE("when agent and guard are killed at once, the launcher kills what is left") {
  Running running;
  kill(running.guard, SIGSTOP);  // So that neither half acts on the end of the other.
  kill(running.agent, SIGKILL);
  kill(running.guard, SIGKILL);
  running.expect_lost("was lost");
}

TEST_CASE("when agent and guard are killed at once, no process has left the control group") {
  Running running({actor(), "vanish", "wait"});
  if (running.job.control_group->path.empty()) {
    WARN("no control group can be made here: not tested: " + running.job.control_group->reason);
    return;
  }
  kill(running.guard, SIGSTOP);
  kill(running.agent, SIGKILL);
  kill(running.guard, SIGKILL);
  running.expect_lost("was lost");
  for (const auto& [rank, text] : running.job.out) CHECK_FALSE(alive(std::stoi(text)));
}

TEST_CASE("when agent, guard and launcher are killed at once, the control group is killed") {
  const DrivenJob job(2, {actor(), "vanish", "wait"});
  const int vanished = std::stoi(job.said.front());
  REQUIRE(alive(vanished));
  // The process that starts the vanishing one may still live.
  REQUIRE(eventually([&] { return living_with(job.marker).size() == 2; }));
  const auto ranks = living_with(job.marker);
  const int agent = parent_of(ranks.front());
  const int guard = parent_of(agent);
  REQUIRE(parent_of(guard) == job.launcher);
  for (const int pid : {guard, job.launcher, agent}) kill(pid, SIGSTOP);
  for (const int pid : {guard, job.launcher, agent}) kill(pid, SIGKILL);
  waitpid(job.launcher, nullptr, 0);
  CHECK(gone(job.marker));
  if (job.group.empty()) {
    WARN("no control group can be made here: not tested");
    for (const auto& text : job.said) kill(std::stoi(text), SIGKILL);
    return;
  }
  for (const auto& text : job.said) CHECK(eventually([&] { return !alive(std::stoi(text)); }));
  CHECK(eventually([&] { return !exists(job.group); }));
}

TEST_CASE("a job removes the empty groups of jobs that were killed with their sweepers") {
  const Running running({actor(), "say=up", "wait"});
  const auto& group = running.job.control_group->path;
  if (group.empty()) {
    WARN("no control group can be made here: not tested: " + running.job.control_group->reason);
    return;
  }
  const auto stale =
      fmt::format("{}/horo-test-stale-{}", group.substr(0, group.rfind('/')), getpid());
  const auto fresh =
      fmt::format("{}/horo-test-fresh-{}", group.substr(0, group.rfind('/')), getpid());
  REQUIRE(mkdir(stale.c_str(), 0755) == 0);
  REQUIRE(mkdir(fresh.c_str(), 0755) == 0);
  const std::array<timespec, 2> long_ago{timespec{.tv_sec = 1}, timespec{.tv_sec = 1}};
  REQUIRE(utimensat(AT_FDCWD, stale.c_str(), long_ago.data(), 0) == 0);
  const Running next({actor(), "say=up", "wait"});
  CHECK(eventually([&] { return !exists(stale); }));
  CHECK(exists(fresh));
  CHECK(exists(group));
  rmdir(fresh.c_str());
}

TEST_CASE("a process whose first thread has ended does not outlive the control group") {
  Running running({actor(), "headless", "wait"});
  if (running.job.control_group->path.empty()) {
    WARN("no control group can be made here: not tested: " + running.job.control_group->reason);
    return;
  }
  kill(running.guard, SIGSTOP);
  kill(running.agent, SIGKILL);
  kill(running.guard, SIGKILL);
  running.expect_lost("was lost");
  // This process has adopted it. A process that still runs cannot be reaped.
  for (const auto& [rank, text] : running.job.out)
    CHECK(eventually([&] { return waitpid(std::stoi(text), nullptr, WNOHANG) != 0; }));
}

TEST_CASE("a control group that a rank makes below the job's own ends with its processes") {
  Running running({actor(), "vanish", "wait"});
  const auto& group = running.job.control_group->path;
  if (group.empty()) {
    WARN("no control group can be made here: not tested: " + running.job.control_group->reason);
    return;
  }
  REQUIRE(mkdir((group + "/inner").c_str(), 0755) == 0);
  const auto& vanished = running.job.out.at(Rank{0});
  std::ofstream(group + "/inner/cgroup.procs") << vanished << std::flush;
  kill(running.guard, SIGSTOP);
  kill(running.agent, SIGKILL);
  kill(running.guard, SIGKILL);
  running.expect_lost("was lost");
  CHECK_FALSE(alive(std::stoi(vanished)));
}

TEST_CASE("when the guard is killed, the agent ends its ranks and reports why") {
  Running running;
  kill(running.guard, SIGKILL);
  running.expect_lost("guard");
}

TEST_CASE("signals that are meant for ranks do not end guard and agent") {
  Running running({actor(), "say=up", "wait"});
  for (const int number : {SIGUSR1, SIGUSR2, SIGQUIT, SIGALRM}) {
    kill(running.guard, number);
    kill(running.agent, number);
  }
  for (const int number : {SIGINT, SIGHUP}) kill(running.agent, number);
  running.job.agent().kill();
  REQUIRE(running.job.run());
  CHECK_FALSE(running.job.lost);
  CHECK(running.job.survivors == 0);
}

TEST_CASE("an agent that does not end its ranks in time is killed with its descendants") {
  auto loop = make_loop();
  Job job(*loop, 50ms);
  auto spec = spec_for(2, stubborn());
  spec.failure_grace = spec.grace = 10ms;
  REQUIRE(job.start(std::move(spec)));
  REQUIRE(job.run_until([&] { return job.out.size() == 2; }));
  const int agent = parent_of(job.pids.at(Rank{0}));
  kill(agent, SIGSTOP);
  SECTION("told to stop") {
    job.agent().stop({.rank = Rank{-1}, .cause = LossCause::aborted, .detail = 0}, "testhost");
  }
  SECTION("told to kill") {
    job.agent().kill();
  }
  REQUIRE(job.run());
  REQUIRE(job.lost);
  CHECK_THAT(job.lost->message, Catch::Contains("did not end its ranks"));
  CHECK(living_with(job.marker()).empty());
  CHECK_FALSE(alive(agent));
  CHECK_FALSE(exists(job.control_group->path));
}

TEST_CASE("SIGTERM to the guard ends everything, with a reason") {
  Running running;
  kill(running.guard, SIGTERM);
  running.expect_lost("told to end by a signal");
}

TEST_CASE("a stopped guard reports the end of its agent when it continues") {
  Running running;
  kill(running.guard, SIGSTOP);
  kill(running.agent, SIGKILL);
  kill(running.guard, SIGCONT);
  running.expect_lost("was lost");
}

TEST_CASE("when the launcher is killed, agent, guard, ranks and their descendants end") {
  const DrivenJob job(3, stubborn());
  const auto ranks = living_with(job.marker);
  REQUIRE(ranks.size() == 9);
  int agent = 0;
  for (const int pid : ranks) {
    const int parent = parent_of(pid);
    if (parent_of(parent_of(parent)) == job.launcher) agent = parent;
  }
  REQUIRE(agent != 0);
  const int guard = parent_of(agent);
  kill(job.launcher, SIGKILL);
  waitpid(job.launcher, nullptr, 0);
  CHECK(gone(job.marker));
  CHECK(eventually([&] { return !alive(agent) && !alive(guard); }));
  CHECK(eventually([&] { return !exists(job.group); }));
}
