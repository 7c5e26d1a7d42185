// SPDX-License-Identifier: Apache-2.0
#include "discovery/topology/machine_topology.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "discovery/this_machine.hpp"

using namespace horo;
using namespace horo::discovery;

TEST_CASE("a simulated machine has its cores in the order of memory nodes") {
  const auto topology = synthetic_topology("numa:2 core:2 pu:2");
  REQUIRE(topology);
  CHECK(topology->nodes.size() == 2);
  CHECK(topology->cores == std::vector<Core>{{{0, 1}, 0}, {{2, 3}, 0}, {{4, 5}, 1}, {{6, 7}, 1}});
  CHECK(!synthetic_topology("nonsense:x"));
}

TEST_CASE("this machine has the hardware threads that this process may use, each in one core") {
  const auto topology = read_topology(Detail::devices);
  REQUIRE(topology);
  std::vector<int> cpus;
  for (const auto& core : topology->cores) {
    CHECK(core.node < static_cast<int>(topology->nodes.size()));
    cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  }
  std::sort(cpus.begin(), cpus.end());
  CHECK(cpus == usable_cpus());
  CHECK(topology->nodes.size() == static_cast<std::size_t>(count_memory_nodes()));
}

TEST_CASE("hardware threads are described in the kernel's form") {
  CHECK(describe_cpus({0, 1, 2, 3, 8}) == "0-3,8");
  CHECK(describe_cpus({5, 4, 1}) == "1,4-5");
  CHECK(describe_cpus({}).empty());
}

TEST_CASE("a control group's CPU time is converted to a number of cores") {
  CHECK(parse_quota("200000 100000\n") == 2.0);
  CHECK(parse_quota("50000 100000") == 0.5);
  CHECK(!parse_quota("max 100000\n"));
  CHECK(!parse_quota("-1 100000"));
  CHECK(!parse_quota(""));
}
