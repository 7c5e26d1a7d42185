// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/same_hosts.hpp"

#include <catch2/catch.hpp>

using namespace horo::launcher;

namespace {

using Same = std::vector<std::optional<std::size_t>>;

/// Hosts that are reached by ssh, each through the host that `parents` names.
struct Plan {
  Placement placement;
  StartPlan starts;

  explicit Plan(const std::vector<std::string>& names,
                std::vector<std::optional<std::size_t>> parents = {}) {
    for (const auto& name : names) {
      placement.hosts.push_back({.name = name, .ranks = {}});
      starts.hosts.push_back({.method = StartMethod::ssh, .route = {.host = name, .name = name}});
    }
    starts.tree.levels = parents.empty() ? 1 : 2;
    parents.resize(names.size());
    starts.tree.parents = std::move(parents);
  }

  HostsOfPlan hosts() const { return {placement, starts}; }
};

}  // namespace

TEST_CASE("hosts of the same name are the same, in any order and beside other hosts") {
  const Plan before({"a", "b", "c"});
  const Plan next({"c", "d", "a"});
  CHECK(find_same_hosts(before.hosts(), next.hosts()) == Same{2, std::nullopt, 0});
  CHECK_FALSE(is_same(before.hosts(), next.hosts()));
  CHECK(is_same(before.hosts(), Plan({"a", "b", "c"}).hosts()));
}

TEST_CASE("a host that is reached in another way, or as another user, is not the same") {
  const Plan before({"a", "b", "c"});
  Plan next({"a", "b", "c"});
  next.starts.hosts[0].route.port = 2222;
  next.starts.hosts[1].method = StartMethod::local;
  next.placement.hosts[2].user = "eva";
  CHECK(find_same_hosts(before.hosts(), next.hosts()) == Same(3));
}

TEST_CASE("in a tree all hosts are the same or none is") {
  const Plan before({"a", "b", "c"}, {std::nullopt, 0, 0});
  CHECK(find_same_hosts(before.hosts(), Plan({"a", "b", "c"}, {std::nullopt, 0, 0}).hosts()) ==
        Same{0, 1, 2});
  CHECK(find_same_hosts(before.hosts(), Plan({"a", "b"}, {std::nullopt, 0}).hosts()) == Same(2));
  CHECK(find_same_hosts(before.hosts(), Plan({"a", "b", "c"}, {std::nullopt, 0, 1}).hosts()) ==
        Same(3));
  CHECK(find_same_hosts(before.hosts(), Plan({"a", "b"}).hosts()) == Same(2));
}
