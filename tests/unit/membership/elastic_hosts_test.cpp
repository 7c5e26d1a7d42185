// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/elastic_hosts.hpp"

#include <catch2/catch.hpp>

#include "base/board_header.hpp"
#include "launcher/elastic/membership_orders.hpp"
#include "tests/unit/membership/membership_story.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace horo::test;
using namespace std::chrono_literals;

namespace {

std::string ages(const ElasticHosts& hosts) {
  std::string text;
  for (const auto host : hosts.by_age()) text += hosts.at(host).name;
  return text;
}

constexpr TimePoint kStart{100s};

}  // namespace

TEST_CASE("hosts keep their order while they are offered, and new ones come after them") {
  ElasticHosts hosts({});
  hosts.offer(hosts_of("a:1,b:1,c:1"));
  CHECK(ages(hosts) == "abc");
  hosts.offer(hosts_of("d:1,c:1,b:1"));
  CHECK(ages(hosts) == "bcd");
  hosts.offer(hosts_of("a:1,b:1,c:1,d:1"));
  CHECK(ages(hosts) == "bcda");
}

TEST_CASE("new hosts keep the order of the script") {
  ElasticHosts hosts({});
  hosts.offer(hosts_of("a:1"));
  hosts.offer(hosts_of("z:1,y:1,a:1,x:1"));
  CHECK(ages(hosts) == "azyx");
}

TEST_CASE("an offer is told by its differences from the one before") {
  using Lines = std::vector<std::string>;
  ElasticHosts hosts({});
  CHECK(hosts.offer(hosts_of("a:1")) == Lines{"host a is offered with 1 slot"});
  CHECK(hosts.offer(hosts_of("a:2")) == Lines{"host a offers 2 slots instead of 1"});
  CHECK(hosts.offer(hosts_of("b:1")) ==
        Lines{"host a is no longer offered", "host b is offered with 1 slot"});
  CHECK(hosts.offer(hosts_of("b:1")).empty());
}

TEST_CASE("a host that is offered twice has the slots of both lines") {
  ElasticHosts hosts({});
  hosts.offer(hosts_of("a:1,b:1,a:2"));
  CHECK(ages(hosts) == "ab");
  CHECK(hosts.at(0).slots == 3);
  CHECK(hosts.room() == 4);
}

TEST_CASE("a host has no more slots than a board has room for") {
  ElasticHosts hosts({});
  hosts.offer(hosts_of("a:5000"));
  CHECK(hosts.room() == kMaxLocalRanks);
}

TEST_CASE("a host remembers the most slots that it ever offered") {
  ElasticHosts hosts({});
  hosts.offer(hosts_of("a:4"));
  hosts.offer(hosts_of("a:1"));
  CHECK(hosts.at(0).slots == 1);
  CHECK(hosts.at(0).most_slots == 4);
}

TEST_CASE("a slot may fail as often as it is started again, and each slot counts alone") {
  ElasticHosts hosts({.slot_restarts = 2});
  hosts.offer(hosts_of("a:2"));
  CHECK_FALSE(hosts.count_failure(0, 0));
  CHECK_FALSE(hosts.count_failure(0, 1));
  CHECK_FALSE(hosts.count_failure(0, 0));
  CHECK(hosts.count_failure(0, 0));
}

TEST_CASE("without a cooldown range a host that is put aside never comes back by itself") {
  ElasticHosts hosts({});
  hosts.offer(hosts_of("a:1,b:1"));
  hosts.put_aside(0, "it failed", kStart);
  CHECK(ages(hosts) == "b");
  CHECK(hosts.give_back_due(kStart + 10000h).empty());
  hosts.offer(hosts_of("b:1"));
  hosts.offer(hosts_of("a:1,b:1"));
  CHECK(ages(hosts) == "b");
}

TEST_CASE("each cooldown of a host is longer than the one before, within the range") {
  ElasticHosts hosts({.cooldown = CooldownRange{10s, 100s}, .seed = 7});
  hosts.offer(hosts_of("a:1"));
  auto now = kStart;
  const std::vector<std::pair<Duration, Duration>> expected{
      {20s, 30s}, {40s, 50s}, {80s, 90s}, {100s, 100s}, {100s, 100s}};
  for (const auto& [least, most] : expected) {
    hosts.put_aside(0, "it failed", now);
    const auto lasts = *hosts.at(0).back_at - now;
    CHECK(lasts >= least);
    CHECK(lasts <= most);
    CHECK(hosts.give_back_due(now + lasts - 1ns).empty());
    now += lasts;
    CHECK(hosts.give_back_due(now).size() == 1);
  }
}

TEST_CASE("cooldowns differ between seeds and repeat with the seed") {
  const auto lasts = [](std::uint64_t seed) {
    ElasticHosts hosts({.cooldown = CooldownRange{10s, 100s}, .seed = seed});
    hosts.offer(hosts_of("a:1"));
    hosts.put_aside(0, "it failed", kStart);
    return *hosts.at(0).back_at - kStart;
  };
  CHECK(lasts(1) == lasts(1));
  CHECK(lasts(1) != lasts(2));
}

TEST_CASE("a failure during the cooldown does not make it longer") {
  ElasticHosts hosts({.cooldown = CooldownRange{10s, 100s}});
  hosts.offer(hosts_of("a:1"));
  hosts.put_aside(0, "first", kStart);
  const auto back = hosts.at(0).back_at;
  hosts.put_aside(0, "second", kStart + 5s);
  CHECK(hosts.at(0).back_at == back);
  CHECK(hosts.at(0).why == "first");
}

TEST_CASE("a host that returns from its cooldown is the youngest, and its failures are forgotten") {
  ElasticHosts hosts({.slot_restarts = 0, .cooldown = CooldownRange{10s, 100s}});
  hosts.offer(hosts_of("a:1,b:1"));
  CHECK(hosts.count_failure(0, 0));
  hosts.put_aside(0, "it failed", kStart);
  hosts.give_back_due(kStart + 100s);
  CHECK(ages(hosts) == "ba");
  CHECK(hosts.at(0).failures[0] == 0);
}

TEST_CASE("a host that left is new when it is offered again after it was not") {
  ElasticHosts hosts({});
  hosts.offer(hosts_of("a:1,b:1"));
  hosts.leave(0, 15, "it got a signal", kStart);
  hosts.offer(hosts_of("a:1,b:1"));
  CHECK(ages(hosts) == "b");
  hosts.offer(hosts_of("b:1"));
  hosts.offer(hosts_of("a:1,b:1"));
  CHECK(ages(hosts) == "ba");
  CHECK(hosts.at(0).signal == 0);
}
