// SPDX-License-Identifier: Apache-2.0
// Changes that nobody failed for: hosts come, go, grow and shrink, and signals announce their end.
#include <csignal>

#include <catch2/catch.hpp>

#include "launcher/elastic/membership.hpp"
#include "tests/unit/membership/membership_story.hpp"

using namespace horo;
using namespace horo::test;
using namespace std::chrono_literals;

TEST_CASE("a host that comes gets workers at once, and its workers higher ranks") {
  auto story = running({.min_np = 1, .np = 2}, "a:2");
  CHECK(story.offer("b:2,a:2") == "start 2 b.0; start 3 b.1");
  CHECK(story.lines().back() == "host b is offered with 2 slots");
  CHECK(story.call(3).empty());
  CHECK(story.call(2) == "notice 1 added");
  CHECK(story.call(1) == "over 1");
  CHECK(story.call(0) == "formed 2: 0 1 2 3 (2 survivors)");
  CHECK(story.formed().members[0].place.cross_size == 2);
  CHECK(story.formed().members[3].place.host == 1);
}

TEST_CASE("members train on until a new worker is ready") {
  auto story = running({.min_np = 1, .np = 1}, "a:1");
  CHECK(story.offer("a:1,b:1") == "start 1 b.0");
  CHECK(story.pass(5min).empty());
  CHECK(story.call(1) == "notice 1 added");
}

TEST_CASE("a worker that is ready waits a little for the others, but not for slow ones") {
  auto story = running({.min_np = 1, .np = 1, .join_window = 2s}, "a:1");
  story.offer("a:1,b:3");
  CHECK(story.call(1).empty());
  CHECK(story.pass(1s).empty());
  CHECK(story.call(2).empty());
  CHECK(story.pass(1s) == "notice 1 added");
  CHECK(story.call(0) == "over 1; formed 2: 0 1 2 (1 survivors)");
  CHECK(story.call(3) == "notice 2 added");
}

TEST_CASE("two changes in one second are two notices, and one generation takes in both") {
  auto story = running({.min_np = 1, .np = 1}, "a:1");
  story.offer("a:1,b:1");
  CHECK(story.call(1) == "notice 1 added");
  CHECK(story.offer("a:1,b:1,c:1") == "start 2 c.0");
  CHECK(story.call(2) == "notice 2 added");
  CHECK(story.call(0) == "over 1; formed 2: 0 1 2 (1 survivors)");
  CHECK(story.formed().notice == 2);
}

TEST_CASE("a host that comes when the job has all its workers changes nothing") {
  auto story = running({.min_np = 1, .max_np = 2, .np = 2}, "a:2");
  CHECK(story.offer("a:2,b:2").empty());
  CHECK(story.killed(1) == "over 1; start 2 a.1");
}

TEST_CASE("an offer that says the same, in another order, changes nothing") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  const auto lines = story.lines().size();
  CHECK(story.offer("b:1,a:1").empty());
  CHECK(story.lines().size() == lines);
}

TEST_CASE("workers of a host that is no longer offered leave at a step's end, and none fails") {
  auto story = running({.min_np = 1, .np = 3}, "a:1,b:2");
  CHECK(story.offer("a:1") == "notice 1 removed");
  CHECK(story.lines().back() == "host b is no longer offered");
  CHECK(story.call(2) == "over 1");
  CHECK(story.call(1).empty());
  CHECK(story.call(0) == "formed 2: 0 (1 survivors); removed 1; removed 2");
  CHECK(story.formed().left.size() == 2);
  CHECK(story.exits(1).empty());
  CHECK(story.exits(2, 1) == "close b");
  CHECK(story.state().phase == MembershipPhase::running);
  CHECK(story.closed("b").empty());
}

TEST_CASE("hosts that come and go in one offer are one mixed notice") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  CHECK(story.offer("a:1,c:1") == "notice 1 removed; start 2 c.0");
  CHECK(story.call(2) == "notice 2 mixed");
  CHECK(story.call_all({1, 0}) == "formed 2: 0 2 (1 survivors); removed 1");
}

TEST_CASE("a removal that leaves too few is announced, and the job waits for more hosts") {
  auto story = running({.min_np = 2, .np = 2, .elastic_timeout = 60s}, "a:1,b:1");
  CHECK(story.offer("a:1") == "notice 1 removed");
  story.call(0);
  CHECK(story.call(1) == "removed 1");
  CHECK(story.waiting() ==
        "waiting for more workers: 1 of the 2 workers that --min-np asks for is ready, and 1 slot "
        "is offered (a:1); 1 min 0 s are left");
  CHECK(story.offer("a:1,c:1") == "start 2 c.0");
  CHECK(story.call(2) == "formed 2: 0 2 (1 survivors)");
  CHECK(story.formed().left.front().worker == 1);
}

TEST_CASE("slots that shrink take the newest workers, first those outside the generation") {
  auto story = running({.min_np = 1, .max_np = 3, .np = 3, .spares = 1}, "a:4");
  CHECK(story.formed().members.size() == 3);
  CHECK(story.offer("a:3") == "removed 3");
  CHECK(story.offer("a:1") == "notice 1 removed");
  CHECK(story.call_all({0, 1}).empty());
  CHECK(story.call(2) == "formed 2: 0 (1 survivors); removed 1; removed 2");
  CHECK(story.formed().left.front().why == "host a offers only 1 slot now");
}

TEST_CASE("slots that come back before the members have left keep the workers") {
  auto story = running({.min_np = 1, .np = 2}, "a:2");
  CHECK(story.offer("a:1") == "notice 1 removed");
  CHECK(story.offer("a:2").empty());
  story.call(0);
  CHECK(story.call(1) == "formed 2: 0 1 (2 survivors)");
}

TEST_CASE("a host that flaps is not left with more workers than slots") {
  auto story = running({.min_np = 1, .max_np = 2, .np = 2}, "a:1,b:1");
  story.offer("a:1,c:1");
  story.call(2);
  CHECK(story.offer("a:1,b:1,c:1") == "removed 2");
  CHECK(story.exits(2) == "");
  story.call(0);
  CHECK(story.call(1) == "formed 2: 0 1 (2 survivors)");
}

TEST_CASE("a member that does not leave a host in time is ended without blame") {
  auto story = running({.min_np = 1, .np = 2, .elastic_timeout = 60s}, "a:1,b:1");
  story.offer("a:1");
  CHECK(story.pass(60s) == "over 1; end 1");
  CHECK(story.call(1) == "removed 1");
  CHECK(story.call(0) == "formed 2: 0 (1 survivors)");
  CHECK_FALSE(story.formed().left.front().failed);
  CHECK(story.killed(1) == "close b");
}

TEST_CASE("a removed worker that does not end is ended") {
  auto story = running({.min_np = 1, .np = 2, .rejoin_timeout = 20s}, "a:1,b:1");
  story.offer("a:1");
  story.call_all({1, 0});
  CHECK(story.call(1) == "removed 1");
  CHECK(story.pass(20s) == "end 1");
  CHECK(story.killed(1) == "close b");
}

TEST_CASE("a new worker of a host that goes again is ended, or turned away if it has called") {
  auto story = running({.min_np = 1, .np = 1, .join_window = 1h}, "a:1");
  story.offer("a:1,b:2");
  CHECK(story.call(1).empty());
  CHECK(story.offer("a:1") == "end 2; removed 1");
  CHECK(story.exits(1).empty());
  CHECK(story.killed(2, SIGTERM) == "close b");
}

TEST_CASE("when all hosts are replaced, the old ones hand over before they leave") {
  auto story = running({.min_np = 2, .max_np = 2, .np = 2}, "a:2");
  CHECK(story.offer("b:2") == "start 2 b.0; start 3 b.1");
  CHECK(story.call(2).empty());
  CHECK(story.call(3) == "notice 1 mixed");
  story.call(0);
  CHECK(story.call(1) == "formed 2: 0 2 (1 survivors); removed 1; notice 2 mixed");
  story.call(2);
  CHECK(story.call(0) == "formed 3: 2 3 (1 survivors); removed 0");
}

TEST_CASE("a lone member of a host that goes trains on until another one is ready") {
  auto story = running({.min_np = 1, .np = 1, .elastic_timeout = 60s}, "a:1");
  CHECK(story.offer("").empty());
  CHECK(story.pass(59s).empty());
  CHECK(story.pass(1s) == "over 1; end 0; stop");
  CHECK(story.killed(0).empty());
  CHECK(story.closed("a") == "finish 1");
  CHECK(story.end().failure ==
        "worker 0: host a is no longer offered: no worker is left that has the training's state");
}

TEST_CASE("a signal to one host lets its workers end the step and go") {
  auto story = running({.min_np = 1, .np = 4}, "a:2,b:2");
  CHECK(story.leaves("b", SIGTERM, 30s) == "notice 1 removed");
  CHECK(story.lines().back() == "host b got signal 15 (SIGTERM)");
  story.call_all({0, 1, 2});
  CHECK(story.call(3) == "formed 2: 0 1 (2 survivors); removed 2; removed 3");
  CHECK_FALSE(story.formed().left.front().failed);
  story.exits(2);
  CHECK(story.exits(3) == "close b");
  CHECK(story.closed("b").empty());
  CHECK(story.offer("a:2,b:2").empty());
  story.offer("a:2");
  CHECK(story.offer("a:2,b:2") == "start 4 b.0; start 5 b.1");
}

TEST_CASE("workers that a batch system kills with their host are no failure") {
  auto story = running({.min_np = 1, .np = 2, .slot_restarts = 0}, "a:1,b:1");
  story.leaves("b", SIGTERM, 30s);
  CHECK(story.killed(1, SIGTERM) == "over 1; close b");
  CHECK(story.call(0) == "formed 2: 0 (1 survivors)");
  CHECK_FALSE(story.formed().left.front().failed);
  CHECK(story.lose_agent("b").empty());
}

TEST_CASE("a worker of a host that leaves may end with code 0 without ending the program") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  story.leaves("b", SIGTERM, 30s);
  CHECK(story.exits(1) == "over 1; close b");
  CHECK(story.call(0) == "formed 2: 0 (1 survivors)");
}

TEST_CASE("a host that is asked to leave has the time it was given") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  story.leaves("b", 0, 30s);
  CHECK(story.lines().back() == "host b was asked to leave");
  CHECK(story.pass(29s).empty());
  CHECK(story.pass(1s) == "over 1; end 1");
}

TEST_CASE("a signal to the only host stops the job with the signal's code") {
  auto story = running({.min_np = 1, .np = 2}, "a:2");
  CHECK(story.leaves("a", SIGTERM, 30s) == "stop");
  CHECK(story.state().orders.stop->detail == SIGTERM);
  // The launcher may get the signal as well. That is no second request.
  CHECK(story.apply(LauncherSignalled{SIGTERM}).empty());
  CHECK(story.closed("a") == "finish 143");
}

TEST_CASE("signals to all hosts, one after the other, stop the job") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  CHECK(story.leaves("a", SIGTERM, 30s) == "notice 1 removed");
  CHECK(story.leaves("b", SIGTERM, 30s) == "stop");
}

TEST_CASE("a host that is given back gets workers again") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  story.leaves("b", 0, 30s);
  story.call_all({0, 1});
  CHECK(story.exits(1) == "close b");
  story.closed("b");
  CHECK(story.apply(HostReturned{story.index("b")}) == "start 2 b.0");
}

TEST_CASE("no worker is started on a host whose agent is about to end") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  story.leaves("b", 0, 30s);
  story.call_all({0, 1});
  CHECK(story.exits(1) == "close b");
  CHECK(story.apply(HostReturned{story.index("b")}).empty());
  CHECK(story.closed("b") == "start 2 b.0");
}

TEST_CASE("a spare leaves with its host unnoticed by the members") {
  auto story = running({.min_np = 1, .max_np = 1, .np = 1, .spares = 1}, "a:1,b:1");
  CHECK(story.formed().members.size() == 1);
  CHECK(story.leaves("b", SIGTERM, 30s) == "removed 1");
  CHECK(story.exits(1) == "close b");
}

TEST_CASE("the time while the launcher is suspended counts for no deadline") {
  auto story = running({.min_np = 1, .np = 2, .rejoin_timeout = 20s}, "a:1,b:1");
  story.killed(0);
  CHECK(story.apply(LauncherSuspended{}) == fmt::format("signal {}", SIGSTOP));
  CHECK_FALSE(story.state().orders.wake_at);
  story.pass(1h);
  CHECK(story.apply(LauncherResumed{}) == fmt::format("signal {}", SIGCONT));
  CHECK(story.pass(19s).empty());
  CHECK(story.pass(1s).find("end 1") == 0);
}
