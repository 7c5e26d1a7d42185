// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/signature.hpp"

#include <catch2/catch.hpp>

#include "runtime/tensor/fusion_key.hpp"

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
using horo::runtime::WireDType;
using horo::runtime::WireRule;

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

TEST_CASE(
    "only sums and averages of float32 are rounded between hosts, and ranks agree on the type") {
  auto rounded = of(Kind::allreduce, DType::f32, {4}, ReduceOp::average);
  const auto plain = rounded;
  rounded.wire = WireDType::bf16;
  CHECK(refusal(rounded).empty());
  auto fed_back = rounded;
  fed_back.feedback = 1;
  const auto found = difference(rounded, fed_back);
  CHECK(horo::runtime::name(found.subject) == "wire dtype");
  CHECK(found.a == "bfloat16");
  CHECK(found.b == "bfloat16 with error feedback");
  CHECK(difference(plain, rounded).a == "none");
  CHECK(fusion_key(plain) != fusion_key(rounded));
  auto half = rounded;
  half.wire = WireDType::f16;
  CHECK(fusion_key(half) != fusion_key(rounded));
  auto least = of(Kind::reducescatter, DType::f32, {4}, ReduceOp::min);
  least.wire = WireDType::f16;
  CHECK(refusal(least) ==
        "reducescatter of float32 [4] by min with wire_dtype float16; only the sum or average of "
        "float32 in an allreduce or a reducescatter is rounded between hosts, for others leave "
        "wire_dtype at none");
  auto gathered = of(Kind::allgather, DType::f32, {4});
  gathered.wire = WireDType::bf16;
  CHECK(refusal(gathered).find("allgather of float32 [4] with wire_dtype bfloat16") == 0);
  CHECK_FALSE(is_possible(gathered));
}

TEST_CASE("the rule for the wire leaves small tensors and other types alone") {
  const WireRule rule{.dtype = WireDType::f16, .feedback = true};
  const auto by_rule = [&](Signature s) {
    apply(rule, s);
    return s.wire;
  };
  CHECK(by_rule(of(Kind::allreduce, DType::f32, {1024})) == WireDType::f16);
  CHECK(by_rule(of(Kind::reducescatter, DType::f32, {32, 32})) == WireDType::f16);
  CHECK(by_rule(of(Kind::allreduce, DType::f32, {1023})) == WireDType::none);
  CHECK(by_rule(of(Kind::allreduce, DType::f64, {1024})) == WireDType::none);
  CHECK(by_rule(of(Kind::allreduce, DType::f32, {1024}, ReduceOp::max)) == WireDType::none);
  CHECK(by_rule(of(Kind::allreduce, DType::f32, {1024}, ReduceOp::adasum)) == WireDType::none);
  CHECK(by_rule(of(Kind::broadcast, DType::f32, {1024})) == WireDType::none);
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
    auto wire = s;
    wire.wire = static_cast<WireDType>(value);
    CHECK(is_possible(wire) == (value < horo::runtime::kWireDTypes));
  }
  s.elements = kMostElements + 1;
  CHECK_FALSE(is_possible(s));
}
