// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include "tests/unit/kernels/reference.hpp"

using horo::kernels::DType;
using horo::kernels::Encoding;
using horo::kernels::Isa;
using namespace horo::tests;  // NOLINT(google-build-using-namespace): helpers of these tests

namespace {

constexpr DType kWireTypes[] = {DType::bf16, DType::f16};

std::uint16_t rounded(DType dtype, float value) {
  return dtype == DType::f16 ? half_of(value) : bfloat_of(value);
}

float widened(DType dtype, std::uint16_t bits) {
  return dtype == DType::f16 ? from_half(bits) : from_bfloat(bits);
}

/// All signs and exponents, with every upper part of the fraction that bfloat16 keeps, and the
/// lower parts that decide the rounding of bfloat16 and float16: below, at and above a half.
std::vector<float> deciding_values() {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower :
         {0x0000U, 0x0001U, 0x0fffU, 0x1000U, 0x1001U, 0x1fffU, 0x2000U, 0x3000U, 0x7fffU, 0x8000U,
          0x8001U, 0xefffU, 0xf000U, 0xffffU})
      values.push_back(std::bit_cast<float>(upper << 16U | lower));
  }
  return values;
}

}  // namespace

TEST_CASE(
    "elements are rounded for the wire to the nearest, ties to even, on every instruction set") {
  const auto values = deciding_values();
  for (const auto dtype : kWireTypes) {
    std::vector<std::uint16_t> expected;
    for (const float value : values) expected.push_back(rounded(dtype, value));
    for (const auto isa : isas()) {
      CAPTURE(name(dtype), name(isa));
      std::vector<std::uint16_t> bits(values.size());
      encode_kernel(dtype, isa)({.dtype = dtype}, bits.data(), values.data(), nullptr,
                                values.size());
      REQUIRE(bits == expected);
    }
  }
}

TEST_CASE("every 16-bit pattern decodes to the value that it stands for") {
  std::vector<std::uint16_t> bits(0x10000);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  for (const auto dtype : kWireTypes) {
    for (const auto isa : isas()) {
      CAPTURE(name(dtype), name(isa));
      std::vector<float> values(bits.size());
      decode_kernel(dtype, isa)(values.data(), bits.data(), bits.size());
      for (std::size_t i = 0; i < bits.size(); ++i) {
        const float expected = widened(dtype, bits[i]);
        if (std::isnan(expected)) {
          REQUIRE(std::isnan(values[i]));
        } else {
          REQUIRE(std::bit_cast<std::uint32_t>(values[i]) ==
                  std::bit_cast<std::uint32_t>(expected));
        }
      }
    }
  }
}

TEST_CASE("an encoding scales, adds the remainder and keeps what the rounding leaves") {
  auto values = deciding_values();
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> small(-1e-3F, 1e-3F);
  std::vector<float> before(values.size());
  for (auto& one : before) one = small(random);
  for (const auto dtype : kWireTypes) {
    const Encoding how{.dtype = dtype, .before = 0.3F, .scale = 0.25F};
    for (const auto isa : isas()) {
      CAPTURE(name(dtype), name(isa));
      std::vector<std::uint16_t> bits(values.size());
      auto remainders = before;
      encode_kernel(dtype, isa)(how, bits.data(), values.data(), remainders.data(), values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const float wanted = values[i] * how.before + before[i];
        const auto expected = rounded(dtype, wanted * how.scale);
        REQUIRE(bits[i] == expected);
        const float left = wanted - widened(dtype, expected) / how.scale;
        REQUIRE(remainders[i] == (std::isfinite(left) ? left : 0.0F));
      }
    }
  }
}

TEST_CASE("conversions for the wire touch exactly their elements, whatever length and alignment") {
  std::mt19937_64 random(1);
  std::vector<float> values(200);
  for (auto& value : values) value = static_cast<float>(random() % 1000) * 0.37F;
  for (const auto dtype : kWireTypes) {
    for (const auto isa : isas()) {
      for (std::size_t count = 0; count < 70; ++count) {
        const std::size_t from = random() % 16;
        CAPTURE(name(dtype), name(isa), count, from);
        std::vector<std::uint16_t> bits(100, 0xa5a5);
        std::vector<float> kept(100, 0.0F);
        kept[count] = -5;
        encode_kernel(dtype, isa)({.dtype = dtype}, bits.data() + 1, values.data() + from,
                                  kept.data(), count);
        std::vector<float> back(100, -7.0F);
        decode_kernel(dtype, isa)(back.data() + 3, bits.data() + 1, count);
        REQUIRE(bits[0] == 0xa5a5);
        REQUIRE(bits[count + 1] == 0xa5a5);
        REQUIRE(kept[count] == -5.0F);
        REQUIRE(back[2] == -7.0F);
        REQUIRE(back[count + 3] == -7.0F);
        for (std::size_t i = 0; i < count; ++i) {
          REQUIRE(bits[i + 1] == rounded(dtype, values[from + i]));
          REQUIRE(back[i + 3] + kept[i] == values[from + i]);
        }
      }
    }
  }
}
