// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/submission.hpp"

#include <array>
#include <limits>

#include <catch2/catch.hpp>

using horo::runtime::check;
using horo::runtime::DType;
using horo::runtime::Kind;
using horo::runtime::Signature;
using horo::runtime::Submission;

namespace {

Signature of(Kind kind, std::vector<std::int64_t> shape) {
  Signature s{.kind = kind, .dtype = DType::f32};
  REQUIRE(set_shape(s, shape));
  return s;
}

std::string refusal(const Signature& s, const Submission& given, int rank, int size) {
  const auto status = check(s, given, rank, size);
  return status ? "" : status.error().message;
}

std::string with_splits(std::vector<std::int64_t> splits, std::int64_t rows = 6) {
  static std::array<float, 64> memory;
  return refusal(of(Kind::alltoall, {rows, 2}), {.in = memory.data(), .splits = splits}, 1, 3);
}

}  // namespace

TEST_CASE("splits must be one for each rank, not negative, and together not more than the rows") {
  CHECK(with_splits({1, 2, 3}).empty());
  CHECK(with_splits({0, 0, 0}).empty());
  CHECK(with_splits({}).empty());
  CHECK(with_splits({}, 7) ==
        "alltoall of float32 [7, 2]: 7 rows cannot be split equally over 3 ranks; give splits");
  CHECK(with_splits({3, 3}) ==
        "alltoall of float32 [6, 2]: 2 splits for 3 ranks; give one for each, or none");
  CHECK(with_splits({1, 1, 1, 1}) ==
        "alltoall of float32 [6, 2]: 4 splits for 3 ranks; give one for each, or none");
  CHECK(with_splits({1, -1, 3}) == "alltoall of float32 [6, 2]: split -1 for rank 1 is negative");
  CHECK(with_splits({3, 3, 1}) ==
        "alltoall of float32 [6, 2]: the splits up to rank 2 ask for more than its 6 rows");
  const auto most = std::numeric_limits<std::int64_t>::max();
  CHECK_FALSE(with_splits({most, most, 2}).empty());  // Their sum would wrap around to 0.
}

TEST_CASE("a missing buffer is refused unless it would hold no data") {
  float x = 0;
  CHECK(refusal(of(Kind::allreduce, {1}), {.in = &x}, 0, 2) ==
        "allreduce of float32 [1] without an output buffer");
  CHECK(refusal(of(Kind::allgather, {1}), {}, 0, 2) ==
        "allgather of float32 [1] without an input buffer");
  CHECK(refusal(of(Kind::allreduce, {0}), {}, 0, 2).empty());
  CHECK(refusal(of(Kind::broadcast, {1}), {.out = &x}, 1, 2).empty());
  CHECK(refusal(of(Kind::reducescatter, {1}), {.in = &x}, 0, 2).empty());
  const std::array<std::int64_t, 2> splits{1, 0};
  CHECK(refusal(of(Kind::allgather, {1}), {.in = &x, .splits = splits}, 0, 2) ==
        "allgather of float32 [1] with splits; only alltoall has them");
}

TEST_CASE("in place, a reducescatter writes only where its own rows are in the input") {
  std::array<float, 20> memory{};
  const auto s = of(Kind::reducescatter, {5, 2});  // Rank 1 of 2 has rows 3 and 4.
  const auto at = [&](std::size_t out) {
    return refusal(s, {.in = memory.data(), .out = memory.data() + out}, 1, 2);
  };
  CHECK(at(6).empty());
  CHECK(at(10).empty());
  CHECK(at(0) ==
        "reducescatter of float32 [5, 2]: the output overlaps the input; in place it is where this "
        "rank's rows begin, row 3 of the input");
  CHECK_FALSE(at(9).empty());
}

TEST_CASE("an alltoall's output may not overlap its input") {
  std::array<float, 20> memory{};
  const auto s = of(Kind::alltoall, {4});
  CHECK_FALSE(
      refusal(s, {.in = memory.data(), .out = memory.data() + 3, .room = 16}, 0, 2).empty());
  CHECK(refusal(s, {.in = memory.data(), .out = memory.data() + 4, .room = 16}, 0, 2).empty());
}
