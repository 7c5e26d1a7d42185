// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/core_spread.hpp"

#include <initializer_list>
#include <vector>

#include <catch2/catch.hpp>

using horo::runtime::better_core;

namespace {

cpu_set_t set_of(std::initializer_list<int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return set;
}

std::optional<int> better(int mine, const std::vector<int>& ranks,
                          std::initializer_list<int> allowed) {
  return better_core(mine, ranks, set_of(allowed));
}

}  // namespace

TEST_CASE("a rank leaves a core that has two ranks more than another") {
  CHECK(better(0, {0, 0}, {0, 1}) == 1);
  CHECK(better(0, {0, 0, 0, 1}, {0, 1}) == 1);
  CHECK(better(1, {1, 1, 1, 1}, {0, 1}) == 0);
  CHECK(better(3, {3, 3}, {0, 1, 2, 3, 4}) == 2);  // The nearest, the lower one of two.
  CHECK(better(3, {3, 3, 2, 4}, {2, 3, 4, 6}) == 6);
}

TEST_CASE("a rank stays on its core if a move would not spread the ranks better") {
  CHECK_FALSE(better(0, {0, 1}, {0, 1}));
  CHECK_FALSE(better(0, {0, 0, 1}, {0, 1}));
  CHECK_FALSE(better(0, {0, 0, 1, 1}, {0, 1}));
  CHECK_FALSE(better(0, {0, 0}, {0}));  // Bound to its core.
  CHECK_FALSE(better(2, {}, {0, 1}));
}

TEST_CASE(
    "ranks outnumber cores when more ranks are limited to some cores than there are such cores") {
  const auto outnumber = [](std::initializer_list<std::initializer_list<int>> ranks) {
    std::vector<cpu_set_t> sets;
    for (const auto& cores : ranks) sets.push_back(set_of(cores));
    return horo::runtime::threads_per_core(sets) > 1;
  };
  CHECK_FALSE(outnumber({{0, 1}, {0, 1}}));
  CHECK(outnumber({{0, 1}, {0, 1}, {0, 1}}));
  CHECK_FALSE(outnumber({{0}, {1}}));  // Each bound to its core.
  CHECK(outnumber({{0}, {0}}));
  CHECK_FALSE(outnumber({{0, 1}, {0, 1}, {2, 3}, {2, 3}}));  // Two memory nodes.
  CHECK(outnumber({{0, 1}, {0, 1}, {0, 1}, {2, 3, 4, 5}}));
  CHECK(outnumber({{0}, {0, 1}, {0, 1}}));
  CHECK(outnumber({{0, 1}, {1, 2}, {0, 2}, {0, 1}}));
  CHECK_FALSE(outnumber({{0}, {}, {0}}));  // The cores of one rank are unknown.
}

TEST_CASE("ranks with several threads each may outnumber cores that are enough for the ranks") {
  const std::vector<cpu_set_t> two{set_of({0, 1, 2}), set_of({0, 1, 2, 3})};
  CHECK(horo::runtime::threads_per_core(two, 2) == 1);
  CHECK(horo::runtime::threads_per_core(two, 3) == 2);
  CHECK(horo::runtime::threads_per_core({two.data(), 1}, 4) == 2);
}

TEST_CASE("the fullest cores decide how many ranks share one, rounded up") {
  const std::vector<cpu_set_t> many(64, set_of({0, 1}));
  CHECK(horo::runtime::threads_per_core(many) == 32);
  std::vector<cpu_set_t> uneven(3, set_of({0, 1}));
  CHECK(horo::runtime::threads_per_core(uneven) == 2);
  uneven.resize(7, set_of({5}));
  CHECK(horo::runtime::threads_per_core(uneven) == 4);
  uneven.emplace_back(set_of({}));
  CHECK(horo::runtime::threads_per_core(uneven) == 0);
}

TEST_CASE("a thread that has moved may run on all allowed cores afterwards") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &before)) continue;
    CHECK(horo::runtime::move_to_core(core, before));
    cpu_set_t after;
    REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
    CHECK(CPU_EQUAL(&before, &after));
  }
  CHECK_FALSE(horo::runtime::move_to_core(CPU_SETSIZE - 1, before));  // There is no such core.
}
