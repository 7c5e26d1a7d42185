// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/signature.hpp"

#include <catch2/catch.hpp>

using horo::Errc;
using horo::runtime::check_supported;
using horo::runtime::difference;
using horo::runtime::DType;
using horo::runtime::is_dtype;
using horo::runtime::is_possible;
using horo::runtime::is_reduce_op;
using horo::runtime::Kind;
using horo::runtime::kMostElements;
using horo::runtime::name;
using horo::runtime::ReduceOp;
using horo::runtime::share_of;
using horo::runtime::Signature;

namespace {

Signature of(Kind kind, DType dtype, std::vector<std::int64_t> shape, ReduceOp op = ReduceOp::sum) {
  Signature s{.kind = kind, .op = op, .dtype = dtype};
  REQUIRE(set_shape(s, shape));
  return s;
}

std::string refusal(const Signature& s) {
  const auto status = check_supported(s);
  return status ? "" : status.error().message;
}

}  // namespace

TEST_CASE("rows are dealt out in rank order, and the first ranks get those that are over") {
  for (const std::uint64_t rows : {0ULL, 1ULL, 5ULL, 12ULL, (1ULL << 40U) + 3}) {
    for (const int ranks : {1, 2, 5, 64}) {
      std::uint64_t next = 0;
      for (int r = 0; r < ranks; ++r) {
        const auto share = share_of(rows, ranks, r);
        CHECK(share.first == next);
        const auto n = static_cast<std::uint64_t>(ranks);
        CHECK(share.count == rows / n + (static_cast<std::uint64_t>(r) < rows % n ? 1 : 0));
        next += share.count;
      }
      CHECK(next == rows);
    }
  }
}

TEST_CASE("a row counts its elements although there is none, in any number of dimensions") {
  const std::vector<std::int64_t> deep{0, 2, 1, 3, 1, 1, 1, 1, 5, 7};
  const auto empty = of(Kind::allgather, DType::f32, deep);
  CHECK(empty.elements == 0);
  CHECK(empty.row_elements == 210);
  CHECK(of(Kind::allgather, DType::f32, {4, 0, 3}).row_elements == 0);
  CHECK(of(Kind::allreduce, DType::f32, {}).row_elements == 1);
  Signature over;
  CHECK(set_shape(over, std::vector<std::int64_t>{0, 1LL << 40U, 1LL << 40U}).error().code ==
        Errc::invalid_argument);
}

TEST_CASE("a reduction that does not exist is refused with a remedy") {
  CHECK(refusal(of(Kind::reducescatter, DType::f32, {})) ==
        "reducescatter of a scalar; give it one dimension");
  CHECK(refusal(of(Kind::alltoall, DType::f32, {})) ==
        "alltoall of a scalar; give it one dimension");
  CHECK(refusal(of(Kind::broadcast, DType::f32, {})).empty());
  CHECK(refusal(of(Kind::allreduce, DType::boolean, {3}, ReduceOp::sum)) ==
        "allreduce of bool with sum; use min (logical and) or max (logical or), or convert to a "
        "number type");
  CHECK(refusal(of(Kind::reducescatter, DType::boolean, {3}, ReduceOp::min)).empty());
  auto scaled = of(Kind::allreduce, DType::boolean, {3}, ReduceOp::max);
  scaled.prescale = 2;
  CHECK(refusal(scaled) == "scaling of bool; leave prescale and postscale at 1");
}

TEST_CASE("ranks may differ in what their kind leaves free, and in nothing else") {
  const auto differs = [](const Signature& a, const Signature& b) {
    return horo::runtime::name(difference(a, b).subject);
  };
  for (const Kind kind : {Kind::allgather, Kind::alltoall}) {
    CHECK(differs(of(kind, DType::f32, {3, 2}), of(kind, DType::f32, {9, 2})).empty());
    CHECK(differs(of(kind, DType::f32, {3, 2}), of(kind, DType::f32, {3, 4})) == "shape");
    CHECK(differs(of(kind, DType::f32, {3, 2}), of(kind, DType::f32, {6})) == "shape");
  }
  const auto scattered = of(Kind::reducescatter, DType::f32, {4});
  CHECK(differs(scattered, of(Kind::reducescatter, DType::f32, {5})) == "shape");
  CHECK(differs(scattered, of(Kind::reducescatter, DType::f32, {4}, ReduceOp::max)) == "reduce op");
  auto scaled = scattered;
  scaled.postscale = 2;
  CHECK(differs(scattered, scaled) == "postscale factor");
  CHECK(differs(scattered, of(Kind::allreduce, DType::f32, {4})) == "operation");
}

TEST_CASE("signatures whose values index no table are told from possible ones") {
  Signature s;
  CHECK(is_possible(s));
  for (int value = 0; value < 256; ++value) {
    auto kind = s;
    kind.kind = static_cast<Kind>(value);
    CHECK(is_possible(kind) == (name(kind.kind) != "unknown"));
    auto dtype = s;
    dtype.dtype = static_cast<DType>(value);
    CHECK(is_possible(dtype) == is_dtype(value));
    auto op = s;
    op.op = static_cast<ReduceOp>(value);
    CHECK(is_possible(op) == is_reduce_op(value));
  }
  s.elements = kMostElements + 1;
  CHECK_FALSE(is_possible(s));
}
