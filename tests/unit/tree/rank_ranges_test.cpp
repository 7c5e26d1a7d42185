// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/frames/rank_ranges.hpp"

#include <random>
#include <set>

#include <catch2/catch.hpp>

using horo::ByteReader;
using horo::ByteWriter;
using horo::Rank;
using namespace horo::runtime::tree;  // NOLINT(google-build-using-namespace): a test of it

namespace {

RankRanges from(const std::set<int>& ranks) {
  RankRanges all;
  for (const int rank : ranks) all.add(Rank{rank});
  return all;
}

std::set<int> draw(std::mt19937_64& random) {
  std::set<int> ranks;
  for (auto n = random() % 30; n > 0; --n) ranks.insert(static_cast<int>(random() % 40));
  return ranks;
}

}  // namespace

TEST_CASE("neighbouring ranks become one range") {
  RankRanges ranks;
  for (const int rank : {5, 3, 1, 2, 4}) ranks.add(Rank{rank});
  CHECK(ranks == RankRanges::of(1, 5));
  CHECK(ranks.text() == "1-5");
}

TEST_CASE("a text about ranks names single ranks, pairs and ranges") {
  CHECK(from({0, 2, 3, 7, 8, 9}).text() == "0, 2, 3, 7-9");
  RankRanges many;
  for (int i = 0; i < 1000; ++i) many.add(Rank{2 * i});
  CHECK(many.text().size() < 140);
  CHECK(many.text().ends_with(", ..."));
}

TEST_CASE("a list of rank ranges behaves like a set of ranks") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const auto a = draw(random);
    const auto b = draw(random);
    std::set<int> both;
    std::set<int> either = a;
    std::set<int> rest = a;
    for (const int rank : b) {
      if (a.contains(rank)) both.insert(rank);
      either.insert(rank);
      rest.erase(rank);
    }
    auto sum = from(a);
    sum.add(from(b));
    auto difference = from(a);
    difference.remove(from(b));
    REQUIRE(sum == from(either));
    REQUIRE(difference == from(rest));
    REQUIRE(from(a).intersection(from(b)) == from(both));
    REQUIRE(from(a).contains(from(b)) == (both == b));
    REQUIRE(sum.size() == static_cast<int>(either.size()));
    std::size_t index = 0;
    for (const int rank : either) {
      REQUIRE(sum.contains(Rank{rank}));
      REQUIRE(sum.index_of(Rank{rank}) == index++);
    }
    ByteWriter writer;
    put(writer, sum);
    const auto bytes = writer.take();
    ByteReader reader({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    REQUIRE(take_ranks(reader) == sum);
    REQUIRE(reader.finished());
  }
}
