// SPDX-License-Identifier: Apache-2.0
#include "launcher/placement.hpp"

#include <algorithm>
#include <random>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using discovery::HostSet;

namespace {

struct Row {
  std::size_t host;
  int local_rank, local_size, cross_rank, cross_size;

  friend bool operator==(const Row&, const Row&) = default;
};

std::ostream& operator<<(std::ostream& out, const Row& r) {
  return out << fmt::format("(host {}, local {}/{}, cross {}/{})", r.host, r.local_rank,
                            r.local_size, r.cross_rank, r.cross_size);
}

std::vector<Row> rows(const Placement& placement) {
  std::vector<Row> found;
  for (const auto& r : placement.ranks) {
    CHECK(r.rank.index() == found.size());
    found.push_back({r.host, r.local_rank.value(), r.local_size, r.cross_rank, r.cross_size});
  }
  return found;
}

}  // namespace

TEST_CASE("place fills a host before the next") {
  const auto placement = place(HostSet({{"a", 2}, {"b", 2}}), {.np = 4});
  REQUIRE(placement);
  CHECK(rows(*placement) ==
        std::vector<Row>{{0, 0, 2, 0, 2}, {0, 1, 2, 0, 2}, {1, 0, 2, 1, 2}, {1, 1, 2, 1, 2}});
  CHECK(placement->hosts ==
        std::vector<PlacedHost>{{"a", {Rank{0}, Rank{1}}}, {"b", {Rank{2}, Rank{3}}}});
  CHECK(placement->host_of(Rank{3}).name == "b");
}

TEST_CASE("place counts cross ranks among the hosts that have the same local rank") {
  const auto placement = place(HostSet({{"a", 1}, {"b", 2}}), {.np = 3});
  REQUIRE(placement);
  CHECK(rows(*placement) == std::vector<Row>{{0, 0, 1, 0, 2}, {1, 0, 2, 1, 2}, {1, 1, 2, 0, 1}});
}

TEST_CASE("place starts exactly np ranks, and local sizes count what was placed") {
  const auto placement = place(HostSet({{"a", 2}, {"b", 2}, {"c", 2}}), {.np = 3});
  REQUIRE(placement);
  CHECK(rows(*placement) == std::vector<Row>{{0, 0, 2, 0, 2}, {0, 1, 2, 0, 1}, {1, 0, 1, 1, 2}});
  CHECK(placement->hosts.size() == 2);
}

TEST_CASE("too few slots are an error with wanted and available") {
  const auto placement = place(HostSet({{"a", 2}, {"b", 1}}), {.np = 4});
  REQUIRE(!placement);
  CHECK(placement.error().code == Errc::invalid_argument);
  CHECK_THAT(placement.error().message, Catch::Contains("4 slots wanted, 3 available (a:2, b:1)"));
}

TEST_CASE("np is at least one and at most what a host can hold") {
  for (const int np : {0, -1, -2147483647, 1'000'001}) {
    const auto placement = place(HostSet({{"a", 2}}), {.np = np});
    REQUIRE(!placement);
    CHECK_THAT(placement.error().message, Catch::Contains(fmt::format("-np {}", np)));
  }
  CHECK(place(HostSet({{"a", 1024}}), {.np = 1024}));
  const auto over = place(HostSet({{"a", 1'000'000}}), {.np = 1'000'000});
  REQUIRE(!over);
  CHECK_THAT(over.error().message, Catch::Contains("host 'a'; at most 1024"));
}

TEST_CASE("spread fills all hosts evenly and keeps a host's ranks consecutive") {
  const auto placement =
      place(HostSet({{"a", 8}, {"b", 1}, {"c", 8}}), {.np = 6, .map_by = MapBy::spread});
  REQUIRE(placement);
  CHECK(describe_ranks(placement->hosts[0].ranks) == "0-2");
  CHECK(describe_ranks(placement->hosts[1].ranks) == "3");
  CHECK(describe_ranks(placement->hosts[2].ranks) == "4-5");
}

TEST_CASE("option --map-by host places one rank per host in rounds, and skips full hosts") {
  const auto placement =
      place(HostSet({{"a", 3}, {"b", 1}, {"c", 8}}), {.np = 6, .map_by = MapBy::host});
  REQUIRE(placement);
  CHECK(describe_ranks(placement->hosts[0].ranks) == "0,3,5");
  CHECK(describe_ranks(placement->hosts[1].ranks) == "1");
  CHECK(describe_ranks(placement->hosts[2].ranks) == "2,4");
  CHECK(placement->ranks[5] == PlacedRank{Rank{5}, 0, LocalRank{2}, 3, 0, 1});
  CHECK(placement->ranks[4] == PlacedRank{Rank{4}, 2, LocalRank{1}, 2, 1, 2});
}

TEST_CASE("option --ranks-per-host uses as many hosts as needed") {
  const HostSet hosts({{"a", 8}, {"b", 8}, {"c", 2}});
  const auto placement = place(hosts, {.np = 6, .ranks_per_host = 4});
  REQUIRE(placement);
  CHECK(placement->hosts.size() == 2);
  CHECK(placement->hosts[0].count() == 4);
  CHECK(placement->hosts[1].count() == 2);

  const auto small = place(hosts, {.np = 9, .ranks_per_host = 4});
  REQUIRE(!small);
  CHECK_THAT(small.error().message,
             Catch::Contains("host 'c' has 2 slots, --ranks-per-host 4 wants more; write 'c:4'"));
  const auto few = place(hosts, {.np = 10, .ranks_per_host = 2});
  REQUIRE(!few);
  CHECK_THAT(few.error().message, Catch::Contains("needs 5 hosts, 3 available (a:8, b:8, c:2)"));
}

TEST_CASE("every placement is a bijection of ranks onto places, within the slots") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto draw = [&](int most) { return std::uniform_int_distribution(1, most)(random); };
  for (int round = 0; round < 500; ++round) {
    std::vector<discovery::Host> list;
    for (int i = draw(12); i > 0; --i) list.push_back({fmt::format("h{}", i), draw(9)});
    const HostSet hosts(list);
    const int np = draw(static_cast<int>(hosts.slots()));
    const auto map_by = static_cast<MapBy>(draw(3) - 1);
    const auto placement = place(hosts, {.np = np, .map_by = map_by});
    REQUIRE(placement);
    REQUIRE(placement->ranks.size() == static_cast<std::size_t>(np));
    CHECK(number_ranks(placement->hosts) == *placement);

    int fewest = np;
    int most = 0;
    bool full_before = true;
    std::vector<std::size_t> cross;
    for (const auto& host : placement->hosts) {
      const auto& given = *std::find_if(list.begin(), list.end(),
                                        [&](const auto& h) { return h.name == host.name; });
      CHECK(host.count() <= given.slots);
      CHECK(std::is_sorted(host.ranks.begin(), host.ranks.end()));
      if (map_by == MapBy::pack) CHECK(full_before);
      full_before = host.count() == given.slots;
      if (!full_before) fewest = std::min(fewest, host.count());
      most = std::max(most, host.count());
      cross.resize(std::max(cross.size(), host.ranks.size()), 0);
      for (std::size_t local = 0; local < host.ranks.size(); ++local) {
        const auto& rank = placement->ranks[host.ranks[local].index()];
        CHECK(rank.local_rank.index() == local);
        CHECK(rank.local_size == host.count());
        CHECK(rank.cross_rank == static_cast<int>(cross[local]++));
      }
    }
    for (const auto& rank : placement->ranks)
      CHECK(rank.cross_size == static_cast<int>(cross[rank.local_rank.index()]));
    // A host with free slots has at most one rank less than the fullest host.
    if (map_by != MapBy::pack && placement->hosts.size() == list.size()) CHECK(most <= fewest + 1);
  }
}
