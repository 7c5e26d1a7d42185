// SPDX-License-Identifier: Apache-2.0
// Starts of which a part never comes: the first rank that fails names it. Each stage of a start
// ends a second after the one before it. Where a thread may get no core for so long, as in many
// runs at a low priority, these tests say nothing.
#include <catch2/catch.hpp>

#include "tests/spanning/hosts.hpp"
#include "tests/spanning/runs.hpp"

using namespace horo::spanning;  // NOLINT(google-build-using-namespace): a test of it

namespace {

/// Twelve ranks, so that some of them wait for addresses of others: rank 1 for that of rank 2.
/// Leaders wait for their neighbours in a tree: that of node1 for those of node2 and node3.
const Layout kTwoEach{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}};

}  // namespace

TEST_CASE("where a host never connects, the first failure names it, and no leader that waits") {
  if (is_one_of_many()) return;
  TestHosts hosts(kTwoEach);
  // Its leader then gives up later than rank 1, if each wait of a rank has a time of its own.
  const auto failure = hosts.fail_to_start({.absent = {4, 5}, .late = {2, 3}});
  CHECK(failure == "rank 2: the leaders of node2 have not connected");
}

TEST_CASE("a rank that cannot start a thread fails with the reason, whichever thread that is") {
  if (is_one_of_many()) return;
  TestHosts hosts({{0, 1}, {2}});
  int threads = 0;
  std::string failure;
  for (;; ++threads) {
    CAPTURE(threads);
    REQUIRE(threads < 40);
    failure = hosts.fail_to_start({.threads = threads});
    if (failure.find("it has started") != std::string::npos) break;
    CHECK(failure == "rank 0: Resource temporarily unavailable");
  }
  CHECK(threads >= 3);
}

TEST_CASE("where a rank never attaches, the first failure names it, and not its host's leader") {
  if (is_one_of_many()) return;
  TestHosts hosts(kTwoEach);
  const auto failure = hosts.fail_to_start({.absent = {3}, .late = {2}});
  CHECK(failure.find("rank 2: rank 2 waited for rank 3, which did not call horo_init") == 0);
}
