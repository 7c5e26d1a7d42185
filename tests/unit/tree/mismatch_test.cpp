// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/mismatch.hpp"

#include <array>

#include <catch2/catch.hpp>

using namespace horo::runtime;        // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tree;  // NOLINT(google-build-using-namespace): a test of it

namespace {

Signature tensor(DType dtype, std::int64_t rows, Kind kind = Kind::allreduce) {
  Signature s{.kind = kind, .dtype = dtype};
  const std::array<std::int64_t, 2> shape{rows, 3};
  REQUIRE(set_shape(s, shape));
  return s;
}

}  // namespace

TEST_CASE("a mismatch names both values and the ranks on each side") {
  const Variants variants{{tensor(DType::f32, 2), RankRanges::of(0, 9000)},
                          {tensor(DType::f64, 2), RankRanges::of(9000, 1000)}};
  CHECK_FALSE(compatible(variants));
  CHECK(describe_mismatch("w", variants).text ==
        "tensor 'w': ranks disagree about the dtype: float32 on ranks 0-8999, float64 on ranks "
        "9000-9999");
  CHECK(describe_mismatch("w", variants).subject == horo::ErrorSubject::dtype);
}

TEST_CASE("every rank is compared with the lowest rank") {
  const Variants variants{{tensor(DType::f32, 2), RankRanges::of(1, 3)},
                          {tensor(DType::f32, 4), RankRanges::of(0, 1)}};
  CHECK(describe_mismatch("w", variants).text ==
        "tensor 'w': ranks disagree about the shape: [2, 3] on ranks 1-3, [4, 3] on rank 0");
}

TEST_CASE("row counts of an allgather may differ") {
  CHECK(compatible({{tensor(DType::f32, 2, Kind::allgather), RankRanges::of(0, 1)},
                    {tensor(DType::f32, 5, Kind::allgather), RankRanges::of(1, 1)}}));
}
