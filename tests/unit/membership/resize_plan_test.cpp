// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/resize_plan.hpp"

#include <csignal>

#include "tests/unit/membership/membership_story.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace horo::test;
using namespace std::chrono_literals;

namespace {

/// A running job and the user's wishes for its hosts.
struct World {
  Story story;
  HostWishes wishes;
  bool others_may_come = true;

  World(const ElasticRules& rules, const std::string& hosts) : story(running(rules, hosts)) {
    wishes.take(hosts_of(hosts));
  }

  /// Does what the driver does. Returns the answer's text, and "no: " before a refusal.
  std::string resize(ResizeKind kind, const std::string& host, int slots = Resize::kAll) {
    const Resize wish{.kind = kind, .host = host, .slots = slots};
    const auto plan = plan_resize(
        {.state = story.state(), .wishes = wishes, .others_may_come = others_may_come}, wish);
    if (!plan.answer.accepted) return "no: " + plan.answer.text;
    wish_slots(wishes, wish);
    orders.clear();
    if (plan.event) orders = story.apply(*plan.event);
    if (auto more = story.apply(HostsOffered{wishes.hosts()}); !more.empty())
      orders += (orders.empty() ? "" : "; ") + more;
    return plan.answer.text;
  }

  std::string shrink(const std::string& host, int slots = Resize::kAll) {
    return resize(ResizeKind::shrink, host, slots);
  }

  std::string grow(const std::string& host, int slots = Resize::kAll) {
    return resize(ResizeKind::grow, host, slots);
  }

  std::string orders;  ///< The orders that followed from the last accepted wish.
};

ElasticRules rules(int least, int most = kMaxRanks) {
  return {.min_np = least, .max_np = most, .np = least};
}

}  // namespace

TEST_CASE("a host that the user takes away leaves at the end of a step and stays away") {
  World world(rules(1), "a:2,b:2");
  CHECK(world.shrink("b") ==
        "host b leaves the job: 2 ranks there end the step and go; 2 ranks of the job go on");
  CHECK(world.orders == "notice 1 removed");
  world.story.call_all({0, 1, 2});
  CHECK(world.story.call(3) == "formed 2: 0 1 (2 survivors); removed 2; removed 3");
  world.story.exits(2);
  CHECK(world.story.exits(3) == "close b");
  world.story.closed("b");
  // Neither an answer of the hosts' source nor its silence about the host brings it back.
  CHECK(world.story.offer("a:2").empty());
  CHECK(world.story.offer("a:2,b:2").empty());
  CHECK(world.shrink("b") == "no: host b was asked to leave already; none of its ranks is left");
  CHECK(
      world.grow("b") ==
      "host b is used with 2 slots: 2 ranks start there and join at the end of a step when ready");
  CHECK(world.orders == "start 4 b.0; start 5 b.1");
}

TEST_CASE("a host keeps the slots that the user leaves it, whatever its source offers later") {
  World world(rules(1), "a:2,b:2");
  CHECK(world.shrink("b", 1) ==
        "host b keeps 1 of 2 slots: 1 rank there ends the step and goes; 3 ranks of the job go on");
  CHECK(world.orders == "notice 1 removed");
  world.wishes.take(hosts_of("a:2,b:4"));
  CHECK(world.wishes.hosts().find("b")->slots == 1);
  CHECK(world.shrink("b", 3) == "no: host b has 1 slot only, so it cannot be shrunk to 3");
  CHECK(world.grow("b", 1) == "no: host b is used with 1 slot already");
  world.grow("b");
  CHECK(world.wishes.hosts().find("b")->slots == 4);
}

TEST_CASE("a job is not shrunk below --min-np, and the answer says by how much") {
  World world(rules(3), "a:2,b:2");
  CHECK(world.shrink("b") ==
        "no: only 2 slots would be left, 1 fewer than --min-np 3 asks for; add slots elsewhere "
        "first: horo grow JOB HOST:SLOTS");
  CHECK(world.shrink("b", 1).starts_with("host b keeps 1 of 2 slots"));
  World spread(rules(2, 2), "a:2,b:2");
  CHECK(spread.shrink("a") ==
        "host a leaves the job: 2 ranks there end the step and go; 0 ranks of the job go on; 2 new "
        "ranks can start on other hosts");
  CHECK(spread.orders == "start 2 b.0; start 3 b.1");
}

TEST_CASE("an unknown host is refused with the hosts that the job has") {
  World world(rules(1), "a:1,b:1,c:1");
  world.shrink("b");
  CHECK(world.shrink("x") == "no: the job has no host 'x'; its hosts are a, b (leaving), c");
  CHECK(
      world.grow("x") ==
      "no: the source of the hosts does not offer x now; say how many slots it has: horo grow JOB "
      "x:SLOTS; its hosts are a, b (leaving), c");
}

TEST_CASE("a new host joins a job that can have other hosts") {
  World world(rules(1), "a:1");
  CHECK(
      world.grow("x", 2) ==
      "host x is used with 2 slots: 2 ranks start there and join at the end of a step when ready");
  CHECK(world.orders == "start 1 x.0; start 2 x.1");
  world.wishes.take(hosts_of("a:1"));
  CHECK(world.wishes.hosts().find("x")->slots == 2);
  World alone(rules(1), "a:1");
  alone.others_may_come = false;
  CHECK(alone.grow("x", 2).starts_with("no: the job runs on this machine only"));
  CHECK(alone.grow("a", 2).starts_with("host a is used with 2 slots: a rank starts there"));
}

TEST_CASE("a host that grows beyond --max-np is used when other ranks go") {
  World world(rules(1, 2), "a:1,b:1");
  CHECK(world.grow("b", 3) ==
        "host b is used with 3 slots; the job has as many ranks as --max-np 2 allows, so ranks "
        "start there when others leave");
  CHECK(world.orders.empty());
  CHECK(world.grow("b", 2) ==
        "no: host b is used with 3 slots already; horo shrink takes some away");
}

TEST_CASE("a host that was put aside is given back, or stays away for good") {
  World world({.min_np = 1, .np = 2, .slot_restarts = 0, .cooldown = CooldownRange{10s, 10s}},
              "a:1,b:1");
  world.story.killed(1);
  REQUIRE(world.story.state().hosts.at(1).use == HostUse::put_aside);
  CHECK(world.grow("b").starts_with("host b is used with 1 slot: a rank starts there"));
  world.story.call(0);
  world.story.killed(2);
  CHECK(world.shrink("b") == "host b leaves the job; no rank has to go");
  CHECK(world.story.pass(1h).find("start") == std::string::npos);
}

TEST_CASE("wishes that would end the job, or that come too late, are refused") {
  World limited({.min_np = 1, .np = 2, .reset_limit = 0}, "a:1,b:1");
  CHECK(limited.shrink("b").starts_with("no: --reset-limit 0 allows no further change"));
  CHECK(limited.grow("c", 1).starts_with("no: --reset-limit 0 allows no further change"));
  World world(rules(1), "a:1,b:1");
  CHECK(world.grow("b", 0).starts_with("no: a host with 0 slots gets no rank"));
  world.story.exits(0);
  CHECK(world.shrink("b") == "no: the job is ending");
}

TEST_CASE("a host that got a signal is given back only after it has left") {
  World world(rules(1), "a:1,b:1");
  world.story.leaves("b", SIGTERM, 30s);
  CHECK(world.shrink("b") ==
        "no: host b got signal 15 (SIGTERM) already; 1 process of it is still there");
  CHECK(
      world.grow("b").starts_with("no: host b got signal 15 (SIGTERM), and something of the job"));
  world.story.call_all({0, 1});
  world.story.exits(1);
  world.story.closed("b");
  CHECK(world.grow("b").starts_with("host b is used with 1 slot: a rank starts there"));
}
