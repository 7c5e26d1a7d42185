// SPDX-License-Identifier: Apache-2.0
// The end of an elastic job: programs that end, limits, and signals to the launcher.
#include <csignal>

#include <catch2/catch.hpp>

#include "launcher/elastic/membership.hpp"
#include "tests/unit/membership/membership_story.hpp"

using namespace horo;
using namespace horo::test;
using namespace std::chrono_literals;

TEST_CASE("a program that does not use Horo ends well when all its processes do") {
  Story story({.min_np = 2, .np = 2}, "a:2");
  CHECK(story.exits(0).empty());
  CHECK(story.pass(24h).empty());
  CHECK(story.exits(1) == "close a");
  CHECK(story.closed("a") == "finish 0");
}

TEST_CASE("a member that ends with code 0 while others train ends the program, not the others") {
  auto story = running({.min_np = 1, .np = 3}, "a:3");
  // No key is set that would disturb members which have not ended yet.
  CHECK(story.exits(0).empty());
  CHECK(story.state().phase == MembershipPhase::ending);
  CHECK(story.call(1) == "refused 1");
  CHECK(story.state().orders.refused[0].reason ==
        "worker 0 on host a ended with code 0, so the program is ending, and no further generation "
        "is formed");
  CHECK(story.exits(1, 1).empty());
  CHECK(story.pass(1h).empty());
  CHECK(story.exits(2) == "close a");
  CHECK(story.closed("a") == "finish 1");
  CHECK(story.end().failure == "worker 1 on host a: exit code 1");
}

TEST_CASE(
    "a member that ends with code 0 while others wait for a generation refuses them by name") {
  auto story = running({.min_np = 1, .np = 3}, "a:3");
  story.killed(2);
  CHECK(story.call(1).empty());
  CHECK(story.exits(0).find("refused 1") != std::string::npos);
  CHECK(story.state().orders.refused[0].reason ==
        "worker 0 on host a ended with code 0, so the program is ending, and no further generation "
        "is formed");
}

TEST_CASE("a member that ends with code 0 without leaving its generation has failed") {
  auto story = running({.min_np = 1, .np = 3}, "a:3");
  CHECK(story.exits_as_a_member(1) == "over 1; start 3 a.1");
  CHECK(story.call_all({0, 2}) == "formed 2: 0 2 (2 survivors)");
  CHECK(story.formed().left[0].failed);
  CHECK(story.formed().left[0].why ==
        "ended with code 0 without horo_shutdown, while it was a member");
  // When all of them do so, no member is left to go on.
  story.exits_as_a_member(0);
  CHECK(story.exits_as_a_member(2).find("stop") != std::string::npos);
  story.killed(3);
  CHECK(story.closed("a") == "finish 1");
}

TEST_CASE("a training that ends after its last hosts were asked to go has succeeded") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  CHECK(story.offer("").empty());
  CHECK(story.exits(1) == "over 1; close b");
  CHECK(story.exits(0) == "close a");
  CHECK(story.closed("b").empty());
  CHECK(story.closed("a") == "finish 0");
}

TEST_CASE("members of hosts that go do not end the training before the last of them has ended") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  CHECK(story.offer("").empty());
  CHECK(story.exits(1) == "over 1; close b");
  CHECK(story.killed(0) == "stop");
  story.closed("b");
  CHECK(story.closed("a") == "finish 1");
}

TEST_CASE("a member that ends with code 0 without leaving while the program ends is no failure") {
  auto story = running({.min_np = 1, .np = 2}, "a:2");
  story.exits(0);
  CHECK(story.exits_as_a_member(1) == "close a");
  CHECK(story.closed("a") == "finish 0");
}

TEST_CASE("a member lost in the last generation fails the job though the others end well") {
  auto story = running({.min_np = 1, .np = 2, .slot_restarts = 0}, "a:1,b:1");
  story.killed(1);
  story.exits(0);
  story.closed("a");
  CHECK(story.closed("b") == "finish 137");
}

TEST_CASE("a worker that failed and was replaced does not fail the job") {
  auto story = running({.min_np = 1, .np = 2}, "a:2");
  story.killed(1);
  story.call(0);
  story.call(2);
  CHECK(story.call(0) == "over 2; formed 3: 0 2 (1 survivors)");
  story.exits(0);
  CHECK(story.exits(2) == "close a");
  CHECK(story.closed("a") == "finish 0");
}

TEST_CASE("a newcomer that fails does not fail a job whose members end well") {
  auto story = running({.min_np = 1, .np = 1, .slot_restarts = 0}, "a:1");
  story.offer("a:1,b:1");
  CHECK(story.exits(1, 3) == "close b");
  CHECK(story.exits(0) == "close a");
  story.closed("a");
  CHECK(story.closed("b") == "finish 0");
}

TEST_CASE("a newcomer that ends with code 0 before it joins has failed") {
  auto story = running({.min_np = 1, .np = 1, .slot_restarts = 1}, "a:1");
  story.offer("a:1,b:1");
  CHECK(story.exits(1) == "start 2 b.0");
  CHECK(story.lines().back() == "worker 1 on host b: ended with code 0 before it joined the job");
  CHECK(story.exits(2) == "close b");
  CHECK(story.state().phase == MembershipPhase::running);
}

TEST_CASE("spares and newcomers go when the program ends") {
  auto story = running({.min_np = 1, .max_np = 2, .np = 2, .spares = 2}, "a:3");
  story.offer("a:3,b:1");
  CHECK(story.exits(0) == "end 3; removed 2");
  CHECK(story.exits(1).empty());
  CHECK(story.exits(2) == "close a");
  CHECK(story.killed(3, SIGTERM) == "close b");
  story.closed("a");
  CHECK(story.closed("b") == "finish 0");
}

TEST_CASE("a host lost while the program ends is a failure if a member was there") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  story.exits(0);
  CHECK(story.lose_agent("b").empty());
  CHECK(story.closed("a") == "finish 125");
}

TEST_CASE("a member that does not end in time after the first is stopped if there is a limit") {
  auto story = running({.min_np = 1, .np = 2, .end_timeout = 60s}, "a:2");
  story.exits(0);
  CHECK(story.state().orders.wake_at);
  CHECK(story.pass(60s) == "stop");
  CHECK(story.closed("a") == "finish 124");
  CHECK(story.end().failure ==
        "worker 1 on host a did not end within 1 min 0 s after the first worker had ended");
}

TEST_CASE("a spare that cannot be killed does not keep the job from ending well") {
  const ElasticRules rules{
      .min_np = 1, .max_np = 1, .np = 1, .spares = 1, .rejoin_timeout = 20s, .stop_timeout = 60s};
  auto story = running(rules, "a:2");
  CHECK(story.exits(0) == "removed 1");
  CHECK(story.pass(20s) == "end 1");
  CHECK(story.state().orders.wake_at);
  CHECK(story.pass(60s) == "stop");
  CHECK(story.lines().back() ==
        "worker 1 on host a could not be ended; the job does not wait any longer");
  CHECK(story.closed("a") == "finish 0");
}

TEST_CASE("an agent that does not end does not keep the job from ending") {
  auto story = running({.min_np = 1, .np = 1, .close_timeout = 30s}, "a:1");
  CHECK(story.exits(0) == "close a");
  CHECK(story.pass(30s) == "finish 0");
}

TEST_CASE("with a reset limit of 0 no member changes, and a loss ends the job") {
  auto story = running({.min_np = 1, .np = 2, .reset_limit = 0}, "a:2");
  CHECK(story.offer("a:2,b:2").empty());
  CHECK(story.exits(1, 9) == "over 1; stop");
  CHECK(story.closed("a") == "finish 9");
  CHECK(story.end().failure ==
        "worker 1 on host a: exit code 9: the job needs another generation without worker 1, but "
        "--reset-limit 0 allows no more; raise it, or leave it out");
}

TEST_CASE("with a reset limit of 1 the job survives one change and not two") {
  auto story = running({.min_np = 1, .np = 3, .reset_limit = 1}, "a:3");
  CHECK(story.killed(0) == "over 1; start 3 a.0");
  story.call(1);
  CHECK(story.call(2) == "end 3; formed 2: 1 2 (2 survivors)");
  CHECK(story.killed(3).empty());
  CHECK(story.killed(1) == "over 2; stop");
}

TEST_CASE("the first signal stops the job, the second kills it") {
  auto story = running({.min_np = 1, .np = 1}, "a:1");
  CHECK(story.apply(LauncherSignalled{SIGINT}) == "stop");
  CHECK(story.call(0) == "refused 0");
  CHECK(story.apply(LauncherSignalled{SIGINT}) == "kill");
  CHECK(story.closed("a") == "finish 130");
  CHECK(story.end().failure.empty());
  CHECK(story.apply(Ticked{}).empty());
}

TEST_CASE("a signal while the job waits for slots ends it at once") {
  Story story({.np = 4}, "a:1");
  CHECK(story.apply(LauncherSignalled{SIGTERM}) == "stop; finish 143");
}

TEST_CASE("user signals are passed on, and a lost reader of the output ends the job") {
  auto story = running({.min_np = 1, .np = 1}, "a:1");
  CHECK(story.apply(LauncherSignalled{SIGUSR1}) == fmt::format("signal {}", SIGUSR1));
  CHECK(story.apply(LauncherSignalled{SIGPIPE}) == "stop");
  CHECK(story.apply(LauncherSignalled{SIGPIPE}).empty());
}

TEST_CASE("hosts that do not stop are killed, and then given up") {
  auto story = running({.min_np = 1, .np = 1, .stop_timeout = 60s, .close_timeout = 30s}, "a:1");
  story.apply(LauncherSignalled{SIGTERM});
  CHECK(story.pass(60s) == "kill");
  CHECK(story.pass(30s) == "finish 143");
}

TEST_CASE("the job's own time limit ends it") {
  auto story = running({.min_np = 1, .np = 1}, "a:1");
  CHECK(story.apply(JobTimedOut{}) == "stop");
  CHECK(story.closed("a") == "finish 124");
}

TEST_CASE("a failure keeps its code when a signal comes while the job stops") {
  auto story = running({.min_np = 1, .np = 1}, "a:1");
  CHECK(story.exits(0, 4) == "over 1; stop");
  CHECK(story.apply(LauncherSignalled{SIGINT}) == "kill");
  CHECK(story.closed("a") == "finish 4");
}
