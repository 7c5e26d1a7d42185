// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/lanes.hpp"

#include <catch2/catch.hpp>

#include "tests/support/random_buckets.hpp"

using horo::runtime::Bucket;
using horo::runtime::Kind;
using horo::runtime::LanePiece;
using horo::runtime::Lanes;
using horo::runtime::Part;

namespace {

Bucket bucket_of(Kind kind, std::vector<Part> parts, std::vector<std::uint64_t> rows) {
  Bucket bucket;
  bucket.like.kind = kind;
  bucket.parts = std::move(parts);
  bucket.rows = std::move(rows);
  return bucket;
}

std::vector<LanePiece> pieces(const Lanes& lanes, std::size_t lane, std::uint64_t first,
                              std::uint64_t count) {
  std::vector<LanePiece> found;
  lanes.for_pieces(lane, first, count, [&](const LanePiece& piece) { found.push_back(piece); });
  return found;
}

void check_piece(const LanePiece& piece, std::size_t part, std::uint64_t in, std::uint64_t out,
                 std::uint64_t in_chunk, std::uint64_t count) {
  CHECK(piece.part == part);
  CHECK(piece.in == in);
  CHECK(piece.out == out);
  CHECK(piece.in_chunk == in_chunk);
  CHECK(piece.count == count);
}

constexpr std::uint64_t kBig = (std::uint64_t{1} << 33U) + 5;

}  // namespace

TEST_CASE("an allreduce's lane is its tensors end to end, beyond 2^32 elements too") {
  const Lanes lanes(
      bucket_of(Kind::allreduce, {Part{.elements = kBig}, Part{}, Part{.elements = 10}}, {}), 3);
  CHECK(lanes.total(0) == kBig + 10);
  const auto found = pieces(lanes, 0, kBig - 2, 6);
  REQUIRE(found.size() == 2);
  check_piece(found[0], 0, kBig - 2, kBig - 2, 0, 2);
  check_piece(found[1], 2, 0, 0, 2, 4);
}

TEST_CASE("an allgather's lanes end where the rows of the ranks before begin in the output") {
  const auto bucket =
      bucket_of(Kind::allgather, {Part{.row_elements = 2}, Part{.row_elements = kBig}},
                {/* part 0 */ 3, 0, 1, /* part 1 */ 1, 2, 0});
  const Lanes lanes(bucket, 3);
  CHECK(lanes.total(0) == 6 + kBig);
  CHECK(lanes.total(1) == 2 * kBig);
  CHECK(lanes.total(2) == 2);
  CHECK(lanes.longest() == 2 * kBig);
  check_piece(pieces(lanes, 1, kBig, 7)[0], 1, kBig, 2 * kBig, 0, 7);
  check_piece(pieces(lanes, 2, 0, 2)[0], 0, 0, 6, 0, 2);
}

TEST_CASE("a reducescatter's lanes begin where the rows of their rank lie in the input") {
  const auto bucket = bucket_of(
      Kind::reducescatter,
      {Part{.elements = 10, .row_elements = 2}, Part{.elements = 3 * kBig, .row_elements = kBig}},
      {3, 2, 2, 1});
  const Lanes lanes(bucket, 2);
  CHECK(lanes.total(0) == 6 + 2 * kBig);
  CHECK(lanes.total(1) == 4 + kBig);
  const auto found = pieces(lanes, 1, 3, 4);
  REQUIRE(found.size() == 2);
  check_piece(found[0], 0, 9, 3, 0, 1);
  check_piece(found[1], 1, 2 * kBig, 0, 1, 3);
}

TEST_CASE("an alltoall's lanes join what one rank sends and another receives") {
  // Rank 0 sends 1, 2, 0 rows, rank 1 sends 0, 1, kBig, rank 2 sends 3, 4, 0.
  const std::vector<std::uint64_t> rows{1, 2, 0, 0, 1, kBig, 3, 4, 0};
  std::vector<Lanes> lanes;
  for (std::size_t me = 0; me < 3; ++me) {
    auto bucket = bucket_of(Kind::alltoall, {Part{.row_elements = 5}}, {});
    horo::test::add_peers(bucket, rows, me, 3);
    bucket.longest = kBig * 5;
    lanes.emplace_back(bucket, 3);
  }
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      const auto sent = lanes[static_cast<std::size_t>(from)].total(static_cast<std::size_t>(to));
      const auto got =
          lanes[static_cast<std::size_t>(to)].total(static_cast<std::size_t>(3 + from));
      CHECK(sent == got);
      CHECK(sent == rows[static_cast<std::size_t>(from * 3 + to)] * 5);
    }
    CHECK(lanes[static_cast<std::size_t>(from)].longest() == kBig * 5);
  }
  check_piece(pieces(lanes[1], 3 + 2, 1, 4)[0], 0, 16, 16, 0, 4);  // 3 rows skipped, 3 came before.
  check_piece(pieces(lanes[1], 2, 0, 4)[0], 0, 5, 0, 0, 4);
}
