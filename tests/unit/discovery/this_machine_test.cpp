// SPDX-License-Identifier: Apache-2.0
#include "discovery/this_machine.hpp"

#include <sched.h>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::discovery;

TEST_CASE("localhost, loopback addresses and its own name are names of this machine") {
  CHECK(is_this_machine("localhost"));
  CHECK(is_this_machine("LocalHost"));
  CHECK(is_this_machine("127.0.0.1"));
  CHECK(is_this_machine("127.1.2.3"));
  CHECK(is_this_machine("::1"));
  CHECK(is_this_machine(machine_name()));
}

TEST_CASE("a name of another machine is not a name of this machine") {
  CHECK(!is_this_machine("node7.example"));
  CHECK(!is_this_machine("198.51.100.7"));
  CHECK(!is_this_machine("2001:db8::7"));
  CHECK(!is_this_machine(""));
}

TEST_CASE("the usable cores are those in the affinity mask") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CHECK(usable_cores() == CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(usable_cores() == 1);
  sched_setaffinity(0, sizeof before, &before);
}

TEST_CASE("all names of this machine are merged into one host, at the position of the first") {
  CHECK(merge_this_machine(HostSet({{"127.0.0.1", 2}, {"localhost", 3}})).hosts() ==
        std::vector<Host>{{"127.0.0.1", 5}});
  CHECK(merge_this_machine(HostSet({{"n1", 1}, {"localhost", 2}, {"n2", 3}, {"::1", 4}})).hosts() ==
        std::vector<Host>{{"n1", 1}, {"localhost", 6}, {"n2", 3}});
}
