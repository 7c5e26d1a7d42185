// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/monitored_elastic_job.hpp"

#include <csignal>

#include "tests/unit/membership/membership_story.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace horo::test;
using namespace std::chrono_literals;
using timeline::LiveHostUse;

TEST_CASE("the members of an elastic job are described with its hosts, and why some are not used") {
  auto story = running({.min_np = 1,
                        .max_np = 4,
                        .np = 4,
                        .spares = 1,
                        .slot_restarts = 0,
                        .cooldown = CooldownRange{60s, 60s}},
                       "a:1,b:1,c:2,d:1");
  auto seen = describe_members(story.state(), TimePoint{1000s});
  CHECK((seen.generation == 1 && seen.ranks == 4 && seen.min_np == 1 && seen.max_np == 4));
  CHECK((seen.spares == 1 && seen.wanted_spares == 1 && seen.starting == 0));
  CHECK(seen.state == "running");
  story.killed(1);
  story.leaves("c", SIGTERM, 30s);
  story.offer("a:1,b:1,c:2");
  seen = describe_members(story.state(), TimePoint{1010s});
  REQUIRE(seen.hosts.size() == 4);
  CHECK((seen.hosts[0].use == LiveHostUse::used && seen.hosts[0].for_ns == -1));
  CHECK(seen.hosts[1].use == LiveHostUse::put_aside);
  CHECK(seen.hosts[1].why == "worker 1 on host b: killed by signal 9 (SIGKILL)");
  CHECK(seen.hosts[1].for_ns == Duration(50s).count());
  CHECK(seen.hosts[2].use == LiveHostUse::leaving);
  CHECK(seen.hosts[2].processes == 2);
  CHECK(seen.hosts[2].for_ns == Duration(20s).count());
  CHECK(seen.hosts[3].use == LiveHostUse::gone);
  CHECK_THAT(seen.state, Catch::StartsWith("waiting for"));
}

TEST_CASE("a job without --max-np has no upper limit in its description") {
  const auto story = running({.min_np = 1, .np = 1}, "a:1");
  CHECK(describe_members(story.state(), TimePoint{1000s}).max_np == 0);
}
