// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/nccl/nccl_element.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace horo::software_nccl {

namespace {

// ncclDataType_t
enum Type : int { i8, u8, i32, u32, i64, u64, f16, f32, f64, bf16, e4m3, e5m2 };

// ncclRedOp_t
enum Op : int { sum, product, maximum, minimum, average };

int bias_of(SmallFloat type) {
  return (1 << (type.exponent_bits - 1)) - 1;
}

std::uint32_t largest_bits(SmallFloat type) {
  const auto exponent = (1U << static_cast<unsigned>(type.exponent_bits)) - 1;
  const auto mantissa = (1U << static_cast<unsigned>(type.mantissa_bits)) - 1;
  const auto highest = type.has_infinity ? exponent - 1 : exponent;
  return (highest << static_cast<unsigned>(type.mantissa_bits)) |
         (type.has_infinity ? mantissa : mantissa - 1);
}

template <typename T>
T combine(T a, T b, int op) {
  // Integers wrap, which is defined for unsigned ones only.
  using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                               std::type_identity<T>>::type;
  switch (op) {
    case product:
      return static_cast<T>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
    case maximum:
      return std::max(a, b);
    case minimum:
      return std::min(a, b);
    default:
      return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
  }
}

template <typename T, typename Load, typename Store>
void reduce_as(std::span<const std::byte* const> in, std::uint64_t count, int op, Load load,
               Store store) {
  for (std::uint64_t i = 0; i < count; ++i) {
    T all = load(in[0], i);
    for (std::size_t r = 1; r < in.size(); ++r) all = combine<T>(all, load(in[r], i), op);
    if (op == average) all = static_cast<T>(all / static_cast<T>(in.size()));
    store(i, all);
  }
}

template <typename T>
void reduce_plain(std::byte* out, std::span<const std::byte* const> in, std::uint64_t count,
                  int op) {
  const auto load = [](const std::byte* from, std::uint64_t i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    return value;
  };
  reduce_as<T>(in, count, op, load, [out](std::uint64_t i, T value) {
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  });
}

template <typename Bits>
void reduce_small(std::byte* out, std::span<const std::byte* const> in, std::uint64_t count, int op,
                  SmallFloat type) {
  const auto load = [type](const std::byte* from, std::uint64_t i) {
    Bits bits = 0;
    std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
    return decode(bits, type);
  };
  reduce_as<double>(in, count, op, load, [out, type](std::uint64_t i, double value) {
    const auto bits = static_cast<Bits>(encode(value, type));
    std::memcpy(out + i * sizeof bits, &bits, sizeof bits);
  });
}

}  // namespace

double decode(std::uint32_t bits, SmallFloat type) {
  const auto m = static_cast<unsigned>(type.mantissa_bits);
  const auto e = static_cast<unsigned>(type.exponent_bits);
  const auto mantissa = bits & ((1U << m) - 1);
  const auto exponent = (bits >> m) & ((1U << e) - 1);
  const double sign = ((bits >> (m + e)) & 1U) != 0 ? -1 : 1;
  if (exponent == (1U << e) - 1) {
    if (type.has_infinity && mantissa == 0) return sign * std::numeric_limits<double>::infinity();
    if (type.has_infinity || mantissa == (1U << m) - 1)
      return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias_of(type) - type.mantissa_bits);
  return sign * std::ldexp(mantissa + (1U << m),
                           static_cast<int>(exponent) - bias_of(type) - type.mantissa_bits);
}

std::uint32_t encode(double value, SmallFloat type) {
  const auto m = static_cast<unsigned>(type.mantissa_bits);
  const auto e = static_cast<unsigned>(type.exponent_bits);
  const auto sign = std::signbit(value) ? 1U << (m + e) : 0U;
  const auto infinity = ((1U << e) - 1) << m;
  if (std::isnan(value)) return infinity | (type.has_infinity ? 1U << (m - 1) : (1U << m) - 1);
  const double size = std::abs(value);
  const auto too_large = sign | (type.has_infinity ? infinity : largest_bits(type));
  if (std::isinf(size)) return too_large;
  if (size == 0) return sign;
  const int lowest = 1 - bias_of(type);
  const int exponent = std::max(std::ilogb(size), lowest);
  // A whole number of units in the last place; rounding up to the next power of two is right, too.
  const double units = std::nearbyint(std::ldexp(size, type.mantissa_bits - exponent));
  const auto bits =
      (static_cast<std::uint32_t>(exponent - lowest) << m) + static_cast<std::uint32_t>(units);
  return bits > largest_bits(type) ? too_large : sign | bits;
}

std::size_t size_of(int type) {
  constexpr std::size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type < 0 || type > e5m2 ? 0 : kSizes[type];
}

void reduce(std::byte* out, std::span<const std::byte* const> in, std::uint64_t count, int type,
            int op) {
  switch (static_cast<Type>(type)) {
    case i8:
      return reduce_plain<std::int8_t>(out, in, count, op);
    case u8:
      return reduce_plain<std::uint8_t>(out, in, count, op);
    case i32:
      return reduce_plain<std::int32_t>(out, in, count, op);
    case u32:
      return reduce_plain<std::uint32_t>(out, in, count, op);
    case i64:
      return reduce_plain<std::int64_t>(out, in, count, op);
    case u64:
      return reduce_plain<std::uint64_t>(out, in, count, op);
    case f32:
      return reduce_plain<float>(out, in, count, op);
    case f64:
      return reduce_plain<double>(out, in, count, op);
    case f16:
      return reduce_small<std::uint16_t>(out, in, count, op, kHalf);
    case bf16:
      return reduce_small<std::uint16_t>(out, in, count, op, kBfloat16);
    case e4m3:
      return reduce_small<std::uint8_t>(out, in, count, op, kFloat8e4m3);
    case e5m2:
      return reduce_small<std::uint8_t>(out, in, count, op, kFloat8e5m2);
  }
}

}  // namespace horo::software_nccl
