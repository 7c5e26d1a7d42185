// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/tree/tree_plan.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

using namespace horo::launcher;

namespace {

using Parents = std::vector<std::optional<std::size_t>>;

TreePlan plan_of(std::size_t hosts, std::size_t fanout) {
  return plan_tree(std::vector<bool>(hosts, true), fanout);
}

/// The number of agents from the launcher to `host`, including its own.
int depth_of(const TreePlan& plan, std::size_t host) {
  int depth = 1;
  for (auto above = plan.parents[host]; above; above = plan.parents[*above]) ++depth;
  return depth;
}

}  // namespace

TEST_CASE("the launcher starts all agents itself when there are no more than the fanout") {
  CHECK(plan_of(3, 3) == TreePlan{Parents(3), 1});
  CHECK(plan_of(0, 3).parents.empty());
}

TEST_CASE("a fanout of one is a chain") {
  CHECK(plan_of(4, 1) == TreePlan{Parents{std::nullopt, 0, 1, 2}, 4});
}

TEST_CASE("a last level that is not full is spread evenly over the level above") {
  CHECK(plan_of(8, 3).parents == Parents{{}, {}, {}, 0, 1, 2, 0, 1});
}

TEST_CASE("a host that is not in the tree has no parent and no children") {
  const auto plan = plan_tree({true, false, true, false, true}, 1);
  CHECK(plan.parents == Parents{{}, {}, 0, {}, 2});
}

TEST_CASE("no host has more children than the fanout, and the tree is as flat as possible") {
  for (const std::size_t fanout : {1, 2, 3, 7, 32}) {
    for (const std::size_t hosts : {1, 2, 31, 32, 33, 64, 1000}) {
      INFO(hosts << " hosts, fanout " << fanout);
      const auto plan = plan_of(hosts, fanout);
      std::vector<std::size_t> children(hosts);
      std::size_t roots = 0;
      int deepest = 0;
      for (std::size_t host = 0; host < hosts; ++host) {
        const auto parent = plan.parents[host];
        roots += parent ? 0 : 1;
        if (parent) ++children[*parent];
        deepest = std::max(deepest, depth_of(plan, host));
      }
      CHECK(roots == std::min(hosts, fanout));
      CHECK(*std::max_element(children.begin(), children.end()) <= fanout);
      CHECK(deepest == plan.levels);
      // A tree with one level less is too small.
      std::size_t room = 0;
      std::size_t level = 1;
      for (int i = 1; i < plan.levels; ++i) room += level *= fanout;
      CHECK(room < hosts);
    }
  }
}
