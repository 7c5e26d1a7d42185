// SPDX-License-Identifier: Apache-2.0
// The row counts that the members of an alltoall between hosts exchange before it.
#include "runtime/engine/splits_exchange.hpp"

#include <catch2/catch.hpp>

#include "runtime/backends/flat/segment.hpp"
#include "runtime/bucket/lanes.hpp"

using namespace horo;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it

namespace {

constexpr std::uint64_t kRow = 3;  // Elements of a row of the first tensor; the second has one.

/// Rows of the tensor that `from` sends to `to`.
std::uint64_t rows(std::size_t tensor, std::size_t from, std::size_t to) {
  return (from * 7 + to * (tensor + 3)) % 5;
}

SplitsExchange exchange_of(std::size_t me, std::size_t members) {
  SplitsExchange exchange(2, members);
  for (std::size_t t = 0; t < 2; ++t) {
    std::vector<std::uint64_t> splits;
    for (std::size_t to = 0; to < members; ++to) splits.push_back(rows(t, me, to));
    exchange.add(t, splits, t == 0 ? kRow : 1);
  }
  return exchange;
}

/// The exchanges of all members, after their buckets have moved: row `me` of each input is what the
/// others get.
std::vector<SplitsExchange> exchanged(std::size_t members) {
  std::vector<SplitsExchange> all;
  std::vector<Bucket> buckets;
  for (std::size_t me = 0; me < members; ++me) all.push_back(exchange_of(me, members));
  for (std::size_t me = 0; me < members; ++me)
    buckets.push_back(all[me].bucket(static_cast<int>(me)));
  for (std::size_t from = 0; from < members; ++from) {
    for (std::size_t to = 0; to < members; ++to) {
      const auto words = buckets[from].parts[0].row_elements;
      const auto* const out = static_cast<const std::uint64_t*>(buckets[from].parts[0].in);
      auto* const in = static_cast<std::uint64_t*>(buckets[to].parts[0].out);
      std::copy_n(out + to * words, words, in + from * words);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("members of an alltoall learn what they receive, and all learn the same longest lane") {
  constexpr std::size_t kMembers = 9;
  std::uint64_t longest = 0;
  for (std::size_t from = 0; from < kMembers; ++from) {
    for (std::size_t to = 0; to < kMembers; ++to)
      longest = std::max(longest, rows(0, from, to) * kRow + rows(1, from, to));
  }
  const auto all = exchanged(kMembers);
  for (std::size_t me = 0; me < kMembers; ++me) {
    for (std::size_t t = 0; t < 2; ++t) {
      std::vector<PeerRows> peers;
      all[me].read(t, peers);
      REQUIRE(peers.size() == kMembers);
      for (std::size_t r = 0; r < kMembers; ++r) {
        CHECK(peers[r].sent == rows(t, me, r));
        CHECK(peers[r].received == rows(t, r, me));
      }
    }
    CHECK(all[me].longest(std::vector<std::uint64_t>{kRow, 1}).value() == longest);
  }
}

TEST_CASE("a member that sends more than it says is found out") {
  const auto all = exchanged(4);
  const auto longest = all[1].longest(std::vector<std::uint64_t>{100, 1});
  REQUIRE_FALSE(longest);
  CHECK(longest.error().code == Errc::protocol);
}

TEST_CASE("before an alltoall of 1,024 ranks each sends 24 bytes to each, not all its counts") {
  constexpr int kRanks = 1024;
  auto exchange = exchange_of(5, kRanks);
  const auto bucket = exchange.bucket(5);
  CHECK(bucket.rows.empty());
  CHECK(bucket.peers.size() == kRanks);
  CHECK(bucket.parts[0].elements == 3 * kRanks);
  const Mesh mesh{.position = 5, .size = kRanks};
  const Lanes lanes(bucket, kRanks);
  const auto unit = segment_unit(bucket, kRanks, segment_bytes(kRanks));
  CHECK(lanes.longest() <= unit);  // One segment.
  CHECK(make_segment(bucket, lanes, mesh, unit, 0).schedule.sent() == 24 * (kRanks - 1));
  std::vector<PeerRows> peers;
  exchange.read(0, peers);
  CHECK(peers.size() == kRanks);
}
