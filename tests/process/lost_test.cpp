// SPDX-License-Identifier: Apache-2.0
// kill -9 of the launcher and of either half of the agent: nothing survives.
#include "job.hpp"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::test;

namespace {

std::vector<std::string> stubborn() {
  return {actor(), "ignore-term", "fork", "escape", "say=up", "wait"};
}

/// A job of two ranks that has started, and the pair that supervises it.
struct Running {
  std::unique_ptr<Loop> loop = make_loop();
  Job job{*loop};
  int agent = 0;
  int guard = 0;

  Running() {
    REQUIRE(job.start(spec_for(2, stubborn())));
    REQUIRE(job.run_until([&] { return job.out.size() == 2; }));
    agent = parent_of(job.pids.at(Rank{0}));
    guard = parent_of(agent);
    REQUIRE(parent_of(guard) == getpid());
    REQUIRE(living_with(job.marker()).size() == 6);
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
  }
};

}  // namespace

TEST_CASE("kill -9 of the agent: the guard ends all that is left") {
  Running running;
  kill(running.agent, SIGKILL);
  running.expect_lost("was lost");
}

TEST_CASE("kill -9 of both halves at once: the launcher ends what is left") {
  Running running;
  kill(running.guard, SIGSTOP);  // So that neither acts on the other's end.
  kill(running.agent, SIGKILL);
  kill(running.guard, SIGKILL);
  running.expect_lost("was lost");
}

TEST_CASE("kill -9 of the guard: the agent ends its ranks and says so") {
  Running running;
  kill(running.guard, SIGKILL);
  running.expect_lost("guard");
}

TEST_CASE("SIGTERM to the guard ends all and says so") {
  Running running;
  kill(running.guard, SIGTERM);
  running.expect_lost("told to end by a signal");
}

TEST_CASE("the agent's end under a stopped guard is seen when the guard goes on") {
  Running running;
  kill(running.guard, SIGSTOP);
  kill(running.agent, SIGKILL);
  kill(running.guard, SIGCONT);
  running.expect_lost("was lost");
}

TEST_CASE("kill -9 of the launcher ends agent, guard, ranks and their descendants") {
  std::array<int, 2> pipe{};
  REQUIRE(pipe2(pipe.data(), O_CLOEXEC) == 0);
  const pid_t launcher = fork();
  REQUIRE(launcher >= 0);
  if (launcher == 0) {
    dup2(pipe[1], STDOUT_FILENO);
    auto words = stubborn();
    std::vector<char*> arguments;
    std::string program = HORO_TEST_DRIVER;
    std::string ranks = "3";
    arguments.push_back(program.data());
    arguments.push_back(ranks.data());
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(program.c_str(), arguments.data());
    _exit(127);
  }
  close(pipe[1]);
  std::string text;
  std::array<char, 256> block{};
  for (ssize_t got = 0;
       text.find("HORO_TEST_MARKER") == std::string::npos || text.back() != '\n';) {
    got = read(pipe[0], block.data(), block.size());
    REQUIRE(got > 0);
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  close(pipe[0]);
  auto marker = text.substr(text.find("HORO_TEST_MARKER"));
  marker.pop_back();
  const auto ranks = living_with(marker);
  REQUIRE(ranks.size() == 9);
  int agent = 0;
  for (const int pid : ranks) {
    const int parent = parent_of(pid);
    if (parent_of(parent_of(parent)) == launcher) agent = parent;
  }
  REQUIRE(agent != 0);
  const int guard = parent_of(agent);
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  CHECK(gone(marker));
  CHECK(eventually([&] { return !alive(agent) && !alive(guard); }));
}
