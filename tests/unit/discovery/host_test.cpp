// SPDX-License-Identifier: Apache-2.0
#include "discovery/host.hpp"

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::discovery;

TEST_CASE("a host that is listed twice is one host with both slots, at its first position") {
  HostSet hosts({{"a", 2}, {"b", 1}, {"a", 3}});
  CHECK(hosts.hosts() == std::vector<Host>{{"a", 5}, {"b", 1}});
  CHECK(hosts.slots() == 6);
  CHECK(hosts.hosts()[0].entries == 2);
  CHECK(hosts.hosts()[1].entries == 1);
  CHECK(describe(hosts) == "a:5, b:1");
}

TEST_CASE("the slots of a host that is listed thousands of times do not overflow") {
  HostSet hosts;
  for (int i = 0; i < 5000; ++i) hosts.add({"a", horo::discovery::kMaxSlots});
  CHECK(hosts.slots() == horo::discovery::kMaxSlots);
}

TEST_CASE("a long list of hosts is described by its beginning") {
  HostSet hosts;
  for (int i = 0; i < 10'000; ++i) hosts.add({fmt::format("n{}", i), 2});
  CHECK(hosts.size() == 10'000);
  CHECK(describe(hosts) == "n0:2, n1:2, n2:2, n3:2, n4:2, n5:2, n6:2, n7:2 and 9992 more hosts");
}
