// SPDX-License-Identifier: Apache-2.0
// The start of an elastic job, and the loss of workers and hosts.
#include "launcher/elastic/membership.hpp"

#include <catch2/catch.hpp>

#include "base/exit_code.hpp"
#include "tests/unit/membership/membership_story.hpp"

using namespace horo;
using namespace horo::test;
using namespace std::chrono_literals;

TEST_CASE("two hosts with two slots form a generation of four in host order") {
  Story story({.min_np = 2, .np = 4}, "a:2,b:2");
  CHECK(story.first() == "start 0 a.0; start 1 a.1; start 2 b.0; start 3 b.1");
  CHECK(story.call_all({2, 0, 3}).empty());
  CHECK(story.call(1) == "formed 1: 0 1 2 3 (0 survivors)");
  const auto& members = story.formed().members;
  CHECK(members[2].place ==
        PlacedRank{.rank = Rank{2}, .host = 1, .local_size = 2, .cross_rank = 1, .cross_size = 2});
  CHECK(members[1].place.local_rank == LocalRank{1});
  CHECK(story.formed().joined == std::vector{0, 1, 2, 3});
  CHECK_FALSE(story.formed().since);
  CHECK_FALSE(story.state().orders.wake_at);
  CHECK(story.exits(0).empty());
  CHECK(story.exits(1) == "close a");
  CHECK(story.exits(2).empty());
  CHECK(story.exits(3) == "close b");
  CHECK(story.closed("b").empty());
  CHECK(story.closed("a") == "finish 0");
  CHECK(story.end().failure.empty());
}

TEST_CASE("a call that waits for others keeps the deadline and looks at one other worker") {
  Story story({.min_np = 2, .np = 4, .rejoin_timeout = 60s}, "a:2,b:2");
  story.call_all({0, 1, 2, 3});
  story.killed(3);
  auto state = story.state();
  const auto wake_at = state.orders.wake_at;
  REQUIRE(wake_at);
  const auto now = *wake_at - 1s;
  for (const int worker : {0, 1}) {
    state.orders = {};  // The driver takes them out.
    state = next(std::move(state), WorkerCalled{worker, 2, 1}, now);
    CHECK(state.orders.wake_at == wake_at);
    CHECK(in_short(state).empty());
    // The first one that has not called.
    CHECK(state.round.look_from == static_cast<std::size_t>(worker) + 1);
  }
  state = next(std::move(state), WorkerCalled{2, 2, 1}, now);
  CHECK(in_short(state).starts_with("formed 2: 0 1 2"));
}

TEST_CASE("the place planned at the start is the place in the first generation") {
  Story story({.min_np = 2, .np = 3}, "a:1,b:2");
  story.call_all({0, 1, 2});
  const auto orders = next(begin_membership({.min_np = 2, .np = 3}, TimePoint{}),
                           HostsOffered{hosts_of("a:1,b:2")}, TimePoint{})
                          .orders;
  REQUIRE(orders.start.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(orders.start[i].planned == story.formed().members[i].place);
    CHECK(orders.start[i].planned_size == 3);
  }
}

TEST_CASE("the first generation waits for no spare, but for one that takes a lost worker's place") {
  const ElasticRules rules{.min_np = 2, .max_np = 2, .np = 2, .spares = 1};
  Story prompt(rules, "a:3");
  CHECK(prompt.call(1).empty());
  CHECK(prompt.call(0) == "formed 1: 0 1 (0 survivors)");
  CHECK(prompt.call(2).empty());

  Story late(rules, "a:3");
  CHECK(late.call(0).empty());
  CHECK(late.exits(1, 3) == "start 3 a.1");
  CHECK(late.call(3).empty());
  CHECK(late.call(2) == "formed 1: 0 2 (0 survivors)");
}

TEST_CASE("spares and workers that come later know that the others train without them") {
  const ElasticRules rules{.min_np = 1, .max_np = 2, .np = 2, .spares = 1};
  const auto begun =
      next(begin_membership(rules, TimePoint{}), HostsOffered{hosts_of("a:3")}, TimePoint{});
  const auto& starts = begun.orders.start;
  REQUIRE(starts.size() == 3);
  CHECK_FALSE(starts[0].joins);
  CHECK_FALSE(starts[1].joins);
  CHECK(starts[2].joins);

  Story story(rules, "a:3");
  story.call_all({0, 1, 2});
  const auto lost =
      next(story.state(), WorkerEnded{{.rank = Rank{0}, .wait_status = 9}}, TimePoint{});
  REQUIRE(lost.orders.start.size() == 1);
  CHECK(lost.orders.start[0].joins);
}

TEST_CASE("the first generation takes all slots up to the most, not only those waited for") {
  Story story({.min_np = 2, .max_np = 3, .np = 2}, "a:2,b:2");
  CHECK(story.first() == "start 0 a.0; start 1 a.1; start 2 b.0");
  CHECK(story.call_all({0, 1, 2}) == "formed 1: 0 1 2 (0 survivors)");
}

TEST_CASE("one host is enough for an elastic job") {
  Story story({.min_np = 1, .np = 1}, "localhost:1");
  CHECK(story.call(0) == "formed 1: 0 (0 survivors)");
}

TEST_CASE("a job waits for slots, and starts when enough are offered") {
  Story story({.min_np = 3, .np = 3});
  CHECK(story.offer("").empty());
  CHECK(story.lines() ==
        std::vector<std::string>{"waiting for 3 slots: no slots are offered; 10 min 0 s are left"});
  CHECK(story.offer("a:1").empty());
  CHECK(story.offer("a:1,b:1").empty());
  CHECK(story.waiting() ==
        "waiting for 3 slots: 2 slots are offered (a:1, b:1); 10 min 0 s are left");
  CHECK(story.offer("a:1,b:2") == "start 0 a.0; start 1 b.0; start 2 b.1");
}

TEST_CASE(
    "a job that gets too few slots ends after the elastic timeout and says what it waited for") {
  Story story({.min_np = 3, .np = 4, .elastic_timeout = 60s}, "a:1,b:1");
  CHECK(story.pass(59s).empty());
  CHECK(story.pass(1s) == "stop; finish 124");
  CHECK(story.end().failure ==
        "given up waiting for workers after 1 min 0 s: --min-np asks for 3 slots, and 2 slots are "
        "offered (a:1, b:1); add hosts, lower --min-np or raise --elastic-timeout");
}

TEST_CASE(
    "a job with enough slots for the least begins without the rest after the elastic timeout") {
  Story story({.min_np = 2, .np = 4, .elastic_timeout = 60s}, "a:1,b:1");
  CHECK(story.pass(60s) == "start 0 a.0; start 1 b.0");
}

TEST_CASE("no hosts at all within the elastic timeout end the job") {
  Story story({.elastic_timeout = 60s});
  CHECK(story.pass(60s) == "stop; finish 124");
}

TEST_CASE("the first failure of discovery ends the job; a later one keeps the list and warns") {
  Story story({});
  CHECK(story.apply(OfferFailed{{Errc::io, "script ended with code 3"}}) == "stop; finish 1");
  CHECK(story.end().failure == "the hosts could not be listed: script ended with code 3");
  auto later = running({.np = 2}, "a:2");
  CHECK(later.apply(OfferFailed{{Errc::io, "script ended with code 3"}}).empty());
  CHECK(later.lines().back() == "script ended with code 3; the last known hosts stay");
}

TEST_CASE("a host that fails before the first generation leaves the others with ranks from 0") {
  Story story({.min_np = 2, .np = 4}, "a:2,b:2");
  story.call_all({2, 3});
  CHECK(story.lose_agent("a") == "formed 1: 2 3 (0 survivors)");
  CHECK(story.formed().members[0].place ==
        PlacedRank{.rank = Rank{0}, .host = 0, .local_size = 2, .cross_rank = 0, .cross_size = 1});
  CHECK(story.lines().back() == "host a is put aside: host a was lost: no heartbeat");
}

TEST_CASE("a worker that fails before the first generation is started again, and waited for") {
  Story story({.min_np = 2, .np = 2, .slot_restarts = 1}, "a:2");
  story.call(0);
  CHECK(story.exits(1, 3) == "start 2 a.1");
  CHECK(story.call(2) == "formed 1: 0 2 (0 survivors)");
}

TEST_CASE("a worker that does not call is ended after the start timeout, by name") {
  Story story({.min_np = 2, .np = 3, .slot_restarts = 1, .start_timeout = 30s}, "a:3");
  story.call_all({0, 1});
  CHECK(story.waiting() == "waiting for worker 2 on host a to start; 30.00 s are left");
  CHECK(story.pass(29s).empty());
  CHECK(story.pass(1s) == "end 2; formed 1: 0 1 (0 survivors)");
  CHECK(story.killed(2, 15) == "start 3 a.2");
}

TEST_CASE("too few workers call: the job goes on waiting, and then names what is missing") {
  Story story(
      {.min_np = 2, .np = 2, .slot_restarts = 9, .elastic_timeout = 60s, .start_timeout = 30s},
      "a:2");
  story.call(0);
  CHECK(story.pass(30s) == "end 1");
  CHECK(story.killed(1) == "start 2 a.1");
  CHECK(story.pass(30s) == "end 2");
  CHECK(story.pass(30s) == "refused 0; stop");
  CHECK(story.end().failure.empty());
  CHECK(story.closed("a") == "finish 124");
  CHECK(story.end().failure.find("1 of the 2 workers that --min-np asks for is ready") !=
        std::string::npos);
}

TEST_CASE("a command that does not exist ends the job at once with its code") {
  Story story({.np = 2, .slot_restarts = 5}, "a:1,b:1");
  CHECK(story.apply(WorkerNotStarted{0, {Errc::not_found, "no such program 'trian'"}}) ==
        "close a");
  CHECK(story.apply(WorkerNotStarted{1, {Errc::not_found, "no such program 'trian'"}}) == "stop");
  story.closed("a");
  CHECK(story.closed("b") == "finish 127");
  CHECK(story.end().failure.find("no such program 'trian'") != std::string::npos);
}

TEST_CASE("after a loss the survivors go on at once, and the replacement joins with a notice") {
  auto story = running({.min_np = 2, .np = 4}, "a:4");
  CHECK(story.killed(1) == "over 1; start 4 a.1");
  CHECK(story.call_all({0, 3}).empty());
  CHECK(story.call(2) == "formed 2: 0 2 3 (3 survivors)");
  CHECK(story.formed().left.front().why == "killed by signal 9 (SIGKILL)");
  CHECK(story.formed().left.front().failed);
  CHECK(story.formed().since);
  CHECK(story.call(4) == "notice 1 added");
  CHECK(story.call_all({3, 2}).empty());
  CHECK(story.call(0) == "formed 3: 0 2 3 4 (3 survivors)");
  CHECK(story.formed().notice == 1);
  CHECK(story.formed().joined == std::vector{4});
}

TEST_CASE("a spare that is ready takes a lost member's place in the same generation") {
  auto story = running({.min_np = 2, .max_np = 2, .np = 2, .spares = 1}, "a:2,b:1");
  CHECK(story.formed().members.size() == 2);
  CHECK_FALSE(story.state().orders.wake_at);
  CHECK(story.killed(1) == "over 1; start 3 a.1");
  CHECK(story.call(0) == "formed 2: 0 2 (1 survivors)");
  CHECK(story.call(3).empty());
}

TEST_CASE("when rank 0 is lost first, the oldest survivor becomes rank 0") {
  auto story = running({.min_np = 1, .np = 3}, "a:1,b:1,c:1");
  CHECK(story.killed(0) == "over 1; start 3 a.0");
  CHECK(story.call_all({2, 1}) == "formed 2: 1 2 (2 survivors)");
  CHECK(story.formed().members[0].place.rank == Rank{0});
  CHECK(story.call(3) == "notice 1 added");
  CHECK(story.call_all({1, 2}) == "formed 3: 1 2 3 (2 survivors)");
  CHECK(story.formed().members[2].place.host == 2);
}

TEST_CASE("below the least number the survivors wait for the replacement, with a deadline") {
  auto story = running({.min_np = 2, .np = 2, .elastic_timeout = 60s}, "a:2");
  CHECK(story.killed(0) == "over 1; start 2 a.0");
  CHECK(story.call(1).empty());
  CHECK(story.waiting() == "waiting for worker 2 on host a to start; 1 min 0 s are left");
  CHECK(story.state().orders.wake_at);
  CHECK(story.call(2) == "formed 2: 1 2 (1 survivors)");
}

TEST_CASE("survivors whose replacement does not come end after the elastic timeout") {
  auto story = running({.min_np = 2, .np = 2, .elastic_timeout = 60s}, "a:2");
  story.killed(0);
  story.call(1);
  CHECK(story.pass(60s) == "refused 1; stop");
  CHECK(story.closed("a") == "finish 124");
}

TEST_CASE(
    "a slot that fails too often puts its host aside; members there stay while they are needed") {
  auto story = running({.min_np = 2, .np = 3, .slot_restarts = 0}, "a:3");
  CHECK(story.killed(1) == "over 1");
  CHECK(story.lines().back() ==
        "host a is put aside: worker 1 on host a: killed by signal 9 (SIGKILL)");
  CHECK(story.call_all({0, 2}) == "formed 2: 0 2 (2 survivors)");
  CHECK_FALSE(story.state().orders.notice);
}

TEST_CASE("the siblings of a worker whose host is put aside leave when the others are enough") {
  auto story = running({.min_np = 2, .np = 4, .slot_restarts = 0}, "a:2,b:2");
  story.killed(3);
  CHECK(story.call_all({0, 1, 2}) == "formed 2: 0 1 (2 survivors); removed 2");
  CHECK(story.formed().left.back().why == "host b is put aside");
  CHECK_FALSE(story.formed().left.back().failed);
  CHECK(story.exits(2, 1) == "close b");
  CHECK(story.state().phase == MembershipPhase::running);
}

TEST_CASE("a slot is started again as often as allowed before its host is put aside") {
  auto story = running({.min_np = 1, .np = 2, .slot_restarts = 2}, "a:1,b:1");
  CHECK(story.killed(1) == "over 1; start 2 b.0");
  CHECK(story.call(0) == "formed 2: 0 (1 survivors)");
  CHECK(story.killed(2) == "start 3 b.0");
  CHECK(story.lines().back() == "worker 2 on host b: killed by signal 9 (SIGKILL)");
  CHECK(story.killed(3) == "close b");
  CHECK(story.state().phase == MembershipPhase::running);
}

TEST_CASE("a host that is put aside returns after its cooldown and gets workers again") {
  auto story = running(
      {.min_np = 1, .np = 2, .slot_restarts = 0, .cooldown = CooldownRange{10s, 100s}}, "a:1,b:1");
  CHECK(story.killed(1) == "over 1; close b");
  story.closed("b");
  CHECK(story.call(0) == "formed 2: 0 (1 survivors)");
  CHECK(story.pass(20s).empty());
  CHECK(story.pass(10s) == "start 2 b.0");
  CHECK(story.lines().back() == "host b can be used again");
  CHECK(story.killed(2) == "close b");
  story.closed("b");
  CHECK(story.pass(39s).empty());
  CHECK(story.pass(11s) == "start 3 b.0");
}

TEST_CASE("when every host is put aside the job ends and says why for each") {
  auto story = running({.min_np = 2, .np = 2, .slot_restarts = 0}, "a:1,b:1");
  CHECK(story.exits(1, 7) == "over 1; close b");
  CHECK(story.lose_agent("a") == "stop");
  CHECK(story.closed("b") == "finish 7");
}

TEST_CASE("survivors that are too few end at once when every other host is put aside for ever") {
  auto story = running({.min_np = 2, .np = 2, .slot_restarts = 0}, "a:2");
  story.exits(1, 7);
  CHECK(story.call(0) == "refused 0; stop");
  CHECK(story.closed("a") == "finish 7");
  CHECK(story.end().failure ==
        "worker 1 on host a: exit code 7: no host is left that could be used: host a (worker 1 on "
        "host a: exit code 7)");
}

TEST_CASE("fixed hosts with too few slots end the job at once, and say what is missing") {
  Story story({.min_np = 3, .np = 4, .hosts_are_fixed = true}, "a:1,b:1");
  CHECK(story.first() == "stop; finish 125");
  CHECK(story.end().failure ==
        "--min-np asks for 3 ranks, and the hosts, which do not change, have no room for them: "
        "2 slots are offered (a:1, b:1); lower --min-np or give more hosts");
}

TEST_CASE("fixed hosts with fewer slots than -np begin at once with what there is") {
  Story story({.min_np = 2, .np = 4, .hosts_are_fixed = true}, "a:1,b:1");
  CHECK(story.first() == "start 0 a.0; start 1 b.0");
}

TEST_CASE("a fixed host that cannot be reached ends the job at once if the others are too few") {
  const ElasticRules fixed{.min_np = 3, .np = 4, .slot_restarts = 0, .hosts_are_fixed = true};
  Story story(fixed, "a:2,b:2");
  story.call(0);
  CHECK(story.lose_agent("b", "no route") == "refused 0; stop");
  CHECK(story.end().failure.empty());
  CHECK(story.closed("a") == "finish 125");
  CHECK(story.end().failure.find("host b was lost: no route: --min-np asks for 3 ranks") == 0);
  // Members of a host that is put aside may stay while they are needed.
  auto kept = running(fixed, "a:2,b:2");
  kept.killed(3);
  CHECK(kept.call_all({0, 1, 2}) == "formed 2: 0 1 2 (3 survivors)");
  kept.killed(2);
  CHECK(kept.call_all({0, 1}).find("stop") != std::string::npos);
}

TEST_CASE("a fixed host that returns from its cooldown in time is waited for") {
  auto story = running({.min_np = 2,
                        .np = 2,
                        .slot_restarts = 0,
                        .hosts_are_fixed = true,
                        .cooldown = CooldownRange{5s, 10s},
                        .elastic_timeout = 60s},
                       "a:1,b:1");
  story.killed(1);
  story.closed("b");
  CHECK(story.call(0).empty());
  CHECK(story.pass(11s).find("start 2 b.0") != std::string::npos);
}

TEST_CASE("when all members fail the job ends with the first one's code") {
  auto story = running({.min_np = 1, .np = 2}, "a:2");
  CHECK(story.exits(1, 5) == "over 1; start 2 a.1");
  CHECK(story.exits(0, 6) == "stop");
  story.killed(2);
  CHECK(story.closed("a") == "finish 5");
  CHECK(story.end().failure ==
        "worker 1 on host a: exit code 5: no worker is left that has the training's state");
  CHECK(story.end().worker == 1);
}

TEST_CASE("a newcomer alone does not begin the training anew") {
  auto story = running({.min_np = 1, .max_np = 2, .np = 1, .spares = 1}, "a:1");
  story.offer("a:1,b:1");
  CHECK(story.call(1) == "notice 1 added");
  CHECK(story.call(0) == "over 1; formed 2: 0 1 (1 survivors)");
  CHECK(story.killed(0).find("over 2") == 0);
  CHECK(story.call_from(1, 0).find("refused 1; stop") != std::string::npos);
}

TEST_CASE("a newcomer that met the others is a survivor of their loss") {
  auto story = running({.min_np = 1, .max_np = 2, .np = 1}, "a:1");
  story.offer("a:1,b:1");
  story.call(1);
  CHECK(story.call(0) == "over 1; formed 2: 0 1 (1 survivors)");
  story.killed(0);
  CHECK(story.call(1) == "formed 3: 1 (1 survivors)");
}

TEST_CASE("when nobody entered the first generation, the second has no survivors either") {
  auto story = running({.min_np = 1, .np = 2}, "a:2");
  story.killed(0);
  CHECK(story.call_from(1, 0) == "formed 2: 1 (0 survivors)");
}

TEST_CASE("a member that dies while the others meet costs another generation") {
  auto story = running({.min_np = 1, .np = 3}, "a:3");
  story.killed(0);
  CHECK(story.call_all({1, 2}) == "formed 2: 1 2 (2 survivors)");
  CHECK(story.killed(1).find("over 2") == 0);
  CHECK(story.call_from(2, 1) == "formed 3: 2 (1 survivors)");
}

TEST_CASE("workers that never meet end the job with a question about the network") {
  auto story = running({.min_np = 2, .np = 2, .elastic_timeout = 100s}, "a:1,b:1");
  std::string last;
  for (int i = 0; i < 20 && last.find("stop") == std::string::npos; ++i) {
    story.pass(30s);
    story.call_from(0, 0);
    last = story.call_from(1, 0);
  }
  CHECK(last == "refused 0; refused 1; stop");
  story.closed("a");
  story.closed("b");
  CHECK(story.end().failure.find("can the hosts reach each other?") != std::string::npos);
}

TEST_CASE("a worker that alone cannot join is ended by name, and the others go on without it") {
  auto story =
      running({.min_np = 1, .np = 3, .slot_restarts = 0, .rejoin_timeout = 20s}, "a:1,b:1,c:1");
  story.call_all({0, 1, 2});
  std::string last;
  int meetings = 0;
  for (; meetings < 100 && last.find("end 2") == std::string::npos; ++meetings) {
    story.pass(1s);
    last = story.call_from(2, 1);
    if (last.find("end 2") != std::string::npos) break;
    story.call_from(0, 1);
    story.call_from(1, 1);
  }
  CHECK(meetings == 20);
  CHECK(last == "over 22; end 2; refused 2");
  CHECK(story.call_all({0, 1}) == "formed 23: 0 1 (2 survivors)");
  CHECK(story.lines().back().find("host c is put aside: worker 2 on host c: could not join the "
                                  "others in the last 21 generations, for 20.0") == 0);
}

TEST_CASE("the time while the launcher is suspended is no time in which a worker cannot join") {
  auto story = running({.min_np = 1, .np = 3, .rejoin_timeout = 20s}, "a:1,b:1,c:1");
  story.call_all({0, 1, 2});
  story.pass(1s);
  story.call_from(2, 1);  // It gives up the first meeting.
  story.apply(LauncherSuspended{});
  story.pass(1h);
  story.apply(LauncherResumed{});
  for (int i = 0; i < 4; ++i) {
    story.call_from(0, 1);
    story.call_from(1, 1);
    story.pass(1s);
    CHECK(story.call_from(2, 1).find("end 2") == std::string::npos);
  }
}

TEST_CASE("a worker that gives up a meeting now and then is not ended") {
  auto story = running({.min_np = 1, .np = 2, .elastic_timeout = 20s}, "a:1,b:1");
  for (std::uint64_t i = 0; i < 50; ++i) {
    story.pass(1s);
    const bool enters = i % 5 == 0;
    const auto entered = enters ? story.state().generation : story.state().generation - 1;
    CHECK(story.call_from(0, entered).find("over") == 0);
    CHECK(story.call_from(1, entered).find("formed") == 0);
  }
}

TEST_CASE("a worker that dies in each of its meetings costs no more generations than restarts") {
  auto story = running({.min_np = 1, .np = 1, .slot_restarts = 3}, "a:1");
  story.offer("a:1,b:1");
  int newcomer = 1;
  for (; newcomer < 100 && story.find(newcomer) != nullptr; ++newcomer) {
    CHECK(story.call(newcomer).find("notice") == 0);
    CHECK(story.call(0).find("formed") != std::string::npos);
    story.killed(newcomer);
    CHECK(story.call_from(0, story.state().generation - 1).find("formed") == 0);
  }
  CHECK(newcomer == 5);  // It was started once and again three times.
  CHECK(story.state().generation == 9);
  CHECK(story.lines().back().find("host b is put aside") == 0);
  CHECK(story.pass(1h).empty());
}

TEST_CASE("a reset limit ends a job whose newcomers die in each of their meetings") {
  auto story = running({.min_np = 1, .np = 1, .slot_restarts = 100, .reset_limit = 2}, "a:1");
  story.offer("a:1,b:1");
  CHECK(story.call(1) == "notice 1 added");
  story.call(0);
  story.killed(1);
  CHECK(story.call_from(0, 1) == "end 2; formed 3: 0 (1 survivors)");
  CHECK(story.call(2).find("removed 2") != std::string::npos);
}

TEST_CASE("a survivor that hangs is ended by name, and the others go on") {
  auto story = running({.min_np = 1, .np = 3, .rejoin_timeout = 20s}, "a:1,b:1,c:1");
  story.killed(0);
  story.call(1);
  CHECK(story.waiting() == "waiting for worker 2 on host c to call; 20.00 s are left");
  CHECK(story.pass(19s).empty());
  CHECK(story.pass(1s) == "end 2; formed 2: 1 (1 survivors)");
  CHECK(story.formed().left.back().worker == 2);
  CHECK(story.formed().left.back().why ==
        "did not come back within 20.00 s after the loss of a member of generation 1");
  CHECK(story.killed(2).find("start") == 0);
}

TEST_CASE("no survivor waits longer for one that hangs than the elastic timeout") {
  auto story =
      running({.min_np = 1, .np = 2, .elastic_timeout = 60s, .rejoin_timeout = 1h}, "a:1,b:1");
  story.call(0);
  CHECK(story.pass(60s) == "end 1; formed 2: 0 (1 survivors)");
}

TEST_CASE("a worker that calls while it is being ended for a fault is refused") {
  auto story = running({.min_np = 1, .np = 2, .rejoin_timeout = 20s}, "a:1,b:1");
  story.call(0);
  CHECK(story.pass(20s) == "end 1; formed 2: 0 (1 survivors)");
  CHECK(story.call(1) == "refused 1");
}

TEST_CASE("a second call of a waiting worker gets the answer, and an old one changes nothing") {
  Story story({.min_np = 2, .np = 2}, "a:2");
  CHECK(story.apply(WorkerCalled{0, 1, 0}).empty());
  CHECK(story.apply(WorkerCalled{0, 3, 0}).empty());
  CHECK(story.apply(WorkerCalled{0, 2, 0}).empty());
  CHECK(story.apply(WorkerCalled{1, 1, 0}) == "formed 1: 0 1 (0 survivors)");
  CHECK(story.formed().members[0].attempt == 3);
  CHECK(story.apply(WorkerCalled{0, 3, 1}).empty());
  CHECK(story.state().phase == MembershipPhase::running);
}

TEST_CASE("a member that initialises again takes all members into the next generation") {
  auto story = running({.min_np = 2, .np = 2}, "a:2");
  CHECK(story.call(1) == "over 1");
  CHECK(story.call(0) == "formed 2: 0 1 (2 survivors)");
  CHECK(story.formed().left.empty());
}

TEST_CASE("two losses at once are one regrouping") {
  auto story = running({.min_np = 1, .np = 4}, "a:4");
  CHECK(story.killed(0).find("over 1") == 0);
  CHECK(story.killed(2) == "start 5 a.2");
  story.call(1);
  CHECK(story.call(3) == "formed 2: 1 3 (2 survivors)");
  CHECK(story.formed().left.size() == 2);
}

TEST_CASE("a lost host loses its workers together, and their slots are not started there again") {
  auto story = running({.min_np = 1, .np = 4}, "a:2,b:2");
  CHECK(story.lose_agent("b") == "over 1");
  CHECK(story.call_all({0, 1}) == "formed 2: 0 1 (2 survivors)");
  CHECK(story.formed().left[0].why == "host b was lost: no heartbeat");
  story.killed(3);
  CHECK(story.lose_agent("b").empty());
}

TEST_CASE("an agent that ends before its workers counts as lost") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  CHECK(story.closed("b") == "over 1");
}

TEST_CASE("a call of a worker that is not in the job is refused, so that it does not wait") {
  auto story = running({.min_np = 1, .np = 2}, "a:1,b:1");
  CHECK(story.apply(WorkerCalled{9, 1, 1}) == "refused 9");
  story.lose_agent("b");
  // The host was only cut off, and its worker still runs there.
  CHECK(story.call_from(1, 1) == "refused 1");
  CHECK(story.state().orders.refused[0].reason ==
        "worker 1 is not part of this job, or not any more");
  CHECK(story.call(0) == "formed 2: 0 (1 survivors)");
}

TEST_CASE("events of unknown workers and hosts change nothing") {
  auto story = running({.min_np = 1, .np = 1}, "a:1");
  CHECK(story.apply(WorkerStarted{9}).empty());
  CHECK(story.apply(WorkerEnded{{.rank = Rank{-1}}}).empty());
  CHECK(story.apply(AgentLost{9, {Errc::io, "x"}}).empty());
  CHECK(story.apply(AgentClosed{9}).empty());
  CHECK(story.apply(HostLeaving{9}).empty());
  CHECK(story.apply(HostReturned{9}).empty());
  CHECK(story.state().phase == MembershipPhase::running);
}
