// SPDX-License-Identifier: Apache-2.0
// The rules of docs/design/reductions.md, by example.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include <catch2/catch.hpp>

#include "tests/unit/kernels/reference.hpp"

using horo::kernels::DType;
using horo::kernels::Isa;
using horo::kernels::ReduceOp;
using horo::kernels::Reduction;
using horo::tests::bfloat_of;
using horo::tests::Bytes;
using horo::tests::half_of;
using horo::tests::isas;

namespace {

/// One element per rank; all instruction sets must agree.
template <typename E>
E reduce(const Reduction& what, const std::vector<E>& values) {
  std::vector<const void*> sources(values.size());
  for (std::size_t k = 0; k < values.size(); ++k) sources[k] = &values[k];
  std::vector<Bytes> results;
  for (const Isa isa : isas()) {
    E result{};
    horo::kernels::reduce_kernel(what.dtype, what.op, isa)(what, &result, sources.data(),
                                                           static_cast<int>(values.size()), 1);
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(&result);
    results.emplace_back(begin, begin + sizeof(E));
    REQUIRE(results.back() == results.front());
  }
  E result{};
  std::memcpy(&result, results.front().data(), sizeof(E));
  return result;
}

template <typename E>
constexpr DType kType = DType::f64;
template <>
constexpr DType kType<std::uint8_t> = DType::u8;
template <>
constexpr DType kType<std::int8_t> = DType::i8;
template <>
constexpr DType kType<std::uint16_t> = DType::u16;
template <>
constexpr DType kType<std::int16_t> = DType::i16;
template <>
constexpr DType kType<std::int32_t> = DType::i32;
template <>
constexpr DType kType<std::int64_t> = DType::i64;
template <>
constexpr DType kType<float> = DType::f32;

template <typename E>
E average(const std::vector<E>& values) {
  const auto ranks = static_cast<int>(values.size());
  return reduce<E>({.dtype = kType<E>, .op = ReduceOp::average, .ranks = ranks}, values);
}

template <typename E>
E plain(ReduceOp op, const std::vector<E>& values) {
  return reduce<E>({.dtype = kType<E>, .op = op}, values);
}

std::uint16_t half_sum(const std::vector<std::uint16_t>& halves) {
  return reduce<std::uint16_t>({.dtype = DType::f16}, halves);
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

}  // namespace

TEMPLATE_TEST_CASE("the average of equal integers is that integer", "", std::uint8_t, std::int8_t,
                   std::uint16_t, std::int16_t, std::int32_t, std::int64_t) {
  using Limits = std::numeric_limits<TestType>;
  for (const std::size_t ranks : {1U, 2U, 3U, 7U, 49U, 98U, 103U, 107U}) {
    for (const TestType value : {TestType{1}, TestType{100}, Limits::max(), Limits::min()}) {
      INFO(ranks << " ranks, each " << +value);
      CHECK(average(std::vector<TestType>(ranks, value)) == value);
    }
  }
}

TEMPLATE_TEST_CASE("the average of integers truncates toward zero", "", std::int8_t, std::int16_t,
                   std::int32_t, std::int64_t) {
  CHECK(average<TestType>({3, 4}) == 3);
  CHECK(average<TestType>({-3, -4}) == -3);
  CHECK(average<TestType>({-1, 0, 0}) == 0);
  CHECK(average<TestType>({-2, -2, -1}) == -1);
}

TEST_CASE("the average of the extremes of int64 does not overflow") {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  CHECK(average<std::int64_t>({kMost, kMost, kMost - 3}) == kMost - 1);
  CHECK(average<std::int64_t>({kLeast, kLeast}) == kLeast);
  CHECK(average<std::int64_t>({kLeast, kMost}) == 0);
}

TEST_CASE("the average divides by the ranks, though fewer took part") {
  const Reduction what{.dtype = DType::i32, .op = ReduceOp::average, .ranks = 4};
  CHECK(reduce<std::int32_t>(what, {6, 6}) == 3);
  CHECK(reduce<float>({.dtype = DType::f32, .op = ReduceOp::average, .ranks = 4}, {6, 6}) == 3);
}

TEST_CASE("integer sums and products wrap") {
  CHECK(plain<std::uint8_t>(ReduceOp::sum, {200, 100}) == 44);
  CHECK(plain<std::int8_t>(ReduceOp::sum, {100, 100}) == -56);
  CHECK(plain<std::int16_t>(ReduceOp::product, {300, 300}) ==
        static_cast<std::int16_t>(90000 & 0xffff));
  CHECK(plain<std::int32_t>(ReduceOp::sum, {std::numeric_limits<std::int32_t>::max(), 1}) ==
        std::numeric_limits<std::int32_t>::min());
  CHECK(plain<std::int64_t>(ReduceOp::product, {std::int64_t{1} << 62, 4}) == 0);
}

TEST_CASE("minimum and maximum know whether integers have a sign") {
  CHECK(plain<std::uint8_t>(ReduceOp::max, {1, 255}) == 255);
  CHECK(plain<std::int8_t>(ReduceOp::max, {1, -1}) == 1);
  CHECK(plain<std::uint16_t>(ReduceOp::min, {1, 65535}) == 1);
  CHECK(plain<std::int64_t>(ReduceOp::min, {1, std::numeric_limits<std::int64_t>::min()}) ==
        std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("scaled integers are truncated, and saturate") {
  const auto scaled = [](double before, double after, const std::vector<std::int8_t>& values) {
    const Reduction what{
        .dtype = DType::i8, .op = ReduceOp::sum, .prescale = before, .postscale = after};
    return reduce<std::int8_t>(what, values);
  };
  CHECK(scaled(0.5, 1, {3, 3}) == 2);  // 1 + 1: each input is truncated
  CHECK(scaled(1, 0.5, {3, 4}) == 3);  // 7 / 2
  CHECK(scaled(1, -0.5, {3, 4}) == -3);
  CHECK(scaled(1, 100, {3, 4}) == 127);
  CHECK(scaled(1, -100, {3, 4}) == -128);
  CHECK(scaled(1, kNaN, {3, 4}) == 0);
  const Reduction wide{.dtype = DType::i64, .op = ReduceOp::sum, .postscale = 4};
  CHECK(reduce<std::int64_t>(wide, {std::int64_t{1} << 62}) ==
        std::numeric_limits<std::int64_t>::max());
  const Reduction mean{.dtype = DType::i32, .op = ReduceOp::average, .postscale = 2, .ranks = 2};
  CHECK(reduce<std::int32_t>(mean, {2, 3}) == 5);  // 5 * 2 / 2, truncated once
}

TEST_CASE("any NaN makes the result the one quiet NaN") {
  const auto odd_nan = std::bit_cast<float>(0xffa12345U);  // signalling, negative, with a payload
  for (const ReduceOp op : horo::tests::kOps) {
    for (const auto& values :
         {std::vector<float>{odd_nan, 1}, {1, odd_nan}, {1, odd_nan, 2}, {kNaN, odd_nan}}) {
      INFO(horo::runtime::name(op));
      CHECK(bits(plain<float>(op, values)) == 0x7fc00000U);
    }
  }
  CHECK(bits(plain<float>(ReduceOp::sum, {kInf, -kInf})) == 0x7fc00000U);
  CHECK(std::bit_cast<std::uint64_t>(plain<double>(ReduceOp::max, {1.0, std::nan("7")})) ==
        0x7ff8000000000000U);
  CHECK(half_sum({0xfc01, 0x3c00}) == 0x7e00);
  CHECK(reduce<std::uint16_t>({.dtype = DType::bf16}, {0xff81, 0x3f80}) == 0x7fc0);
}

TEST_CASE("zero with a minus sign is the smaller one") {
  CHECK(bits(plain<float>(ReduceOp::min, {0.0F, -0.0F})) == 0x80000000U);
  CHECK(bits(plain<float>(ReduceOp::min, {-0.0F, 0.0F})) == 0x80000000U);
  CHECK(bits(plain<float>(ReduceOp::max, {0.0F, -0.0F})) == 0);
  CHECK(bits(plain<float>(ReduceOp::max, {-0.0F, 0.0F})) == 0);
  CHECK(bits(plain<float>(ReduceOp::sum, {-0.0F, -0.0F})) == 0x80000000U);
}

TEST_CASE("infinities order and add as numbers do") {
  CHECK(plain<float>(ReduceOp::max, {1, kInf, 2}) == kInf);
  CHECK(plain<float>(ReduceOp::min, {1, -kInf, 2}) == -kInf);
  CHECK(plain<float>(ReduceOp::sum, {1, kInf}) == kInf);
}

TEST_CASE("float16 is summed in float32 and rounded once, ties to even") {
  CHECK(half_sum({half_of(2048), half_of(1)}) == half_of(2048));  // a tie, down to even
  CHECK(half_sum({half_of(2050), half_of(1)}) == half_of(2052));  // a tie, up to even
  CHECK(half_sum({half_of(2048), half_of(1), half_of(1)}) ==
        half_of(2050));                                                // no rounding in between
  CHECK(half_sum({half_of(65504), half_of(15.5)}) == half_of(65504));  // just under the tie
  CHECK(half_sum({half_of(65504), half_of(16)}) == 0x7c00);            // the tie is infinity
  CHECK(half_sum({half_of(65504), half_of(65504), half_of(-65504)}) == half_of(65504));
  CHECK(half_sum({0x0001, 0x0001}) == 0x0002);  // subnormals
  CHECK(half_sum({0x03ff, 0x0001}) == 0x0400);  // up to the least normal
  CHECK(half_sum({0x8001, 0x0001}) == 0x0000);
  CHECK(half_sum({0x7c00, 0x3c00}) == 0x7c00);
}

TEST_CASE("scaled float16 results round into subnormals") {
  const auto halved = [](std::uint16_t half) {
    return reduce<std::uint16_t>({.dtype = DType::f16, .postscale = 0.5}, {half});
  };
  CHECK(halved(0x0001) == 0x0000);  // half of the least: a tie, to even
  CHECK(halved(0x0003) == 0x0002);
  CHECK(halved(0x8003) == 0x8002);
  CHECK(halved(0x0400) == 0x0200);
}

TEST_CASE("bfloat16 is summed in float32 and rounded once, ties to even") {
  const auto sum = [](const std::vector<std::uint16_t>& values) {
    return reduce<std::uint16_t>({.dtype = DType::bf16}, values);
  };
  CHECK(sum({bfloat_of(256), bfloat_of(1)}) == bfloat_of(256));
  CHECK(sum({bfloat_of(258), bfloat_of(1)}) == bfloat_of(260));
  CHECK(sum({bfloat_of(256), bfloat_of(1), bfloat_of(1)}) == bfloat_of(258));
  CHECK(sum({0x7f7f, 0x7f7f}) == 0x7f80);
  CHECK(sum({0x0001, 0x0001}) == 0x0002);
}

TEST_CASE("every float16 and bfloat16 survives a copy through the kernels") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    const bool is_half = dtype == DType::f16;
    for (const Isa isa : isas()) {
      std::vector<std::uint16_t> out(all.size());
      const void* const source = all.data();
      horo::kernels::reduce_kernel(dtype, ReduceOp::sum, isa)({.dtype = dtype}, out.data(), &source,
                                                              1, all.size());
      std::set<std::size_t> changed;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const float value =
            is_half ? horo::tests::from_half(all[i]) : horo::tests::from_bfloat(all[i]);
        const std::uint16_t expected = std::isnan(value) ? (is_half ? 0x7e00 : 0x7fc0) : all[i];
        if (out[i] != expected) changed.insert(i);
      }
      INFO(horo::runtime::name(dtype) << ", " << horo::kernels::name(isa));
      CHECK(changed.empty());
    }
  }
}

TEST_CASE("booleans have min and max, where all but 0 is true, and no other kernel") {
  for (const ReduceOp op : horo::tests::kOps) {
    const bool has = op == ReduceOp::min || op == ReduceOp::max;
    CHECK((horo::kernels::reduce_kernel(DType::boolean, op) != nullptr) == has);
    CHECK((horo::kernels::reduce_to_many_kernel(DType::boolean, op) != nullptr) == has);
  }
  std::mt19937_64 random(5);
  for (const auto isa : horo::tests::isas()) {
    for (const std::size_t count : {1, 63, 64, 200, 1000}) {
      std::vector<horo::tests::Bytes> inputs(3);
      for (auto& input : inputs)
        input = horo::tests::random_elements(DType::boolean, count, random);
      const void* const sources[] = {inputs[0].data(), inputs[1].data(), inputs[2].data()};
      for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
        const horo::kernels::Reduction what{.dtype = DType::boolean, .op = op};
        horo::tests::Bytes out(count);
        horo::kernels::reduce_kernel(DType::boolean, op, isa)(what, out.data(), sources, 3, count);
        CHECK(out == horo::tests::reference(what, inputs, count));
      }
    }
  }
}

TEST_CASE("an instruction set that the machine lacks has no kernel") {
  for (int i = 0; i < horo::kernels::kIsas; ++i) {
    const auto isa = static_cast<Isa>(i);
    CHECK((horo::kernels::reduce_kernel(DType::f32, ReduceOp::sum, isa) != nullptr) ==
          horo::kernels::supported(isa));
  }
  CHECK(horo::kernels::supported(horo::kernels::best_isa()));
}
