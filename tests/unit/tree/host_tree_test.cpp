// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/host_tree.hpp"

#include <catch2/catch.hpp>

using horo::depth_of;
using horo::place_of;
using horo::Rank;
using namespace horo::runtime::tree;  // NOLINT(google-build-using-namespace): a test of it

TEST_CASE("every host but the root has one parent, and every subtree is a run of hosts") {
  for (const int radix : {1, 2, 3, 8, 16, 60}) {
    for (const int hosts : {1, 2, 3, 7, 17, 64, 300}) {
      int edges = 0;
      int deepest = 0;
      for (int h = 0; h < hosts; ++h) {
        const auto place = place_of(h, hosts, radix);
        REQUIRE(place.node == h);
        REQUIRE(static_cast<int>(place.children.size()) <= radix);
        int next = h + 1;
        for (const auto& child : place.children) {
          REQUIRE(child.first == next);
          next = child.end;
          const auto below = place_of(child.first, hosts, radix);
          REQUIRE(below.parent == h);
          REQUIRE(below.end == child.end);
          REQUIRE(below.depth == place.depth + 1);
          ++edges;
        }
        REQUIRE(next == place.end);
        deepest = std::max(deepest, place.depth);
      }
      REQUIRE(edges == hosts - 1);
      REQUIRE(deepest == depth_of(hosts, radix));
    }
  }
}

TEST_CASE("1250 hosts are three links deep") {
  CHECK(depth_of(1250, 16) == 3);
}

TEST_CASE("hosts and ranks that no job can have are refused") {
  const std::vector<HostRanks> good{{.name = "a", .ranks = {Rank{0}, Rank{2}}},
                                    {.name = "b", .ranks = {Rank{1}}}};
  CHECK(validate(good, 2));
  CHECK_FALSE(validate(good, 0));
  CHECK_FALSE(validate(good, kMostRadix + 1));
  CHECK_FALSE(validate({}, 2));
  auto twice = good;
  twice[1].ranks = {Rank{2}};
  CHECK_FALSE(validate(twice, 2));
  auto hole = good;
  hole[1].ranks = {Rank{3}};
  CHECK_FALSE(validate(hole, 2));
  auto empty = good;
  empty[0].ranks = {};
  CHECK_FALSE(validate(empty, 2));
}

TEST_CASE("other ranks, names or another radix give another fingerprint") {
  const std::vector<HostRanks> job{{.name = "a", .ranks = {Rank{0}}},
                                   {.name = "b", .ranks = {Rank{1}}}};
  auto renamed = job;
  renamed[1].name = "c";
  auto swapped = job;
  std::swap(swapped[0].ranks, swapped[1].ranks);
  CHECK(fingerprint(job, 2) != fingerprint(job, 3));
  CHECK(fingerprint(job, 2, "gloo") != fingerprint(job, 2, "mpi"));
  CHECK(fingerprint(job, 2) != fingerprint(renamed, 2));
  CHECK(fingerprint(job, 2) != fingerprint(swapped, 2));
}
