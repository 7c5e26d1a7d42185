// SPDX-License-Identifier: Apache-2.0
#include "launcher/placement.hpp"

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
  CHECK(placement->hosts == std::vector<PlacedHost>{{"a", Rank{0}, 2}, {"b", Rank{2}, 2}});
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
  for (const int np : {0, -1, -2147483647}) {
    const auto placement = place(HostSet({{"a", 2}}), {.np = np});
    REQUIRE(!placement);
    CHECK_THAT(placement.error().message, Catch::Contains(fmt::format("-np {}", np)));
  }
  CHECK(place(HostSet({{"a", 1024}}), {.np = 1024}));
  const auto over = place(HostSet({{"a", 1'000'000'000}}), {.np = 1'000'000'000});
  REQUIRE(!over);
  CHECK_THAT(over.error().message, Catch::Contains("host 'a'; at most 1024"));
}
