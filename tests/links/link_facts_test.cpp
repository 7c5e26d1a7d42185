// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/connections/link_facts.hpp"

#include <catch2/catch.hpp>

#include "tests/links/linked_hosts.hpp"

using namespace horo;                  // NOLINT(google-build-using-namespace): a test of it
using namespace horo::links;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tree;   // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

TEST_CASE("the facts of links are told in classes, so that small differences do not matter") {
  CHECK(describe({.round_trip = 3ms, .mbit_per_s = 10000}) ==
        "10000 Mbit/s, round trips below 4 ms");
  CHECK(describe({.round_trip = 1ms, .mbit_per_s = 10000}) ==
        describe({.round_trip = 3900us, .mbit_per_s = 10000}));
  CHECK(describe({.round_trip = 4ms}) == "round trips below 16 ms");
  CHECK(describe({.round_trip = 30us}) == "round trips below 0.0625 ms");
  CHECK(describe({.mbit_per_s = 1000}) == "1000 Mbit/s");
  CHECK(describe(LinkFacts{}).empty());
}

TEST_CASE("the slower of two links counts, and what is unknown does not") {
  const LinkFacts fast{.round_trip = 50us, .mbit_per_s = 25000};
  const LinkFacts far{.round_trip = 20ms, .mbit_per_s = 100000};
  CHECK(slower(fast, far) == LinkFacts{.round_trip = 20ms, .mbit_per_s = 25000});
  CHECK(slower(fast, {}) == fast);
  CHECK(slower({}, fast) == fast);
}

TEST_CASE("leaders know the round trip of their connections") {
  Cluster cluster(2, 1, 2);
  Hosts hosts(cluster);
  for (const int h : {0, 1}) {
    const auto links = hosts.node(h).links();
    CHECK(links.round_trip > Duration::zero());
    CHECK(links.round_trip < 10s);
  }
}

TEST_CASE("of what is no connection nothing is known") {
  CHECK(facts_of(-1) == LinkFacts{});
}
