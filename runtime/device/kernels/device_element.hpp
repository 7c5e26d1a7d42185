// SPDX-License-Identifier: Apache-2.0
// The types of elements in kernels, and their conversions: to nearest, ties to even, once.
#pragma once

#include "runtime/device/kernels/device_code.hpp"

#if HORO_ON_DEVICE && defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

namespace horo::runtime::device_code {

/// IEEE 754 binary16.
struct Half {
  std::uint16_t bits;
};

/// The upper half of a float.
struct Brain {
  std::uint16_t bits;
};

/// A bool as programs store it: every byte but 0 is true. Results are 0 or 1.
struct Truth {
  std::uint8_t byte;
};

HORO_DEVICE std::uint32_t bits_of(float value) {
#if HORO_ON_DEVICE
  return __float_as_uint(value);
#else
  return load<std::uint32_t>(&value);
#endif
}

HORO_DEVICE float float_of(std::uint32_t bits) {
#if HORO_ON_DEVICE
  return __uint_as_float(bits);
#else
  return load<float>(&bits);
#endif
}

HORO_DEVICE std::int64_t widen(Truth value) {
  return value.byte != 0 ? 1 : 0;
}

HORO_DEVICE float widen(float value) {
  return value;
}

HORO_DEVICE double widen(double value) {
  return value;
}

HORO_DEVICE float widen(Brain value) {
  return float_of(static_cast<std::uint32_t>(value.bits) << 16U);
}

HORO_DEVICE float widen(Half value) {
#if HORO_ON_DEVICE && defined(__CUDACC__)
  return __half2float(__ushort_as_half(value.bits));
#else
  const std::uint32_t sign = (value.bits & 0x8000U) << 16U;
  const std::uint32_t rest = value.bits & 0x7fffU;
  if (rest >= 0x7c00U) return float_of(sign | 0x7f800000U | ((rest & 0x3ffU) << 13U));
  if (rest >= 0x400U) return float_of(sign | ((rest << 13U) + 0x38000000U));
  // Subnormal: a whole number of 2^-24.
  const float value_of_rest = static_cast<float>(rest) * 0x1p-24F;
  return float_of(sign | bits_of(value_of_rest));
#endif
}

template <typename To>
struct Narrow;

template <>
struct Narrow<Brain> {
  HORO_DEVICE static Brain of(float value) {
    const auto bits = bits_of(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U)
      return {static_cast<std::uint16_t>((bits >> 16U) | 0x40U)};
    return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U)};
  }
};

template <>
struct Narrow<Half> {
  HORO_DEVICE static Half of(float value) {
#if HORO_ON_DEVICE && defined(__CUDACC__)
    return {__half_as_ushort(__float2half_rn(value))};
#else
    const auto bits = bits_of(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
    const auto rest = bits & 0x7fffffffU;
    std::uint32_t narrow = 0;
    if (rest >= 0x47800000U) {
      narrow = rest > 0x7f800000U ? 0x7e00U : 0x7c00U;  // NaN; too large.
    } else if (rest < 0x38800000U) {
      // Subnormal: adding 0.5 leaves whole numbers of 2^-24 in the mantissa, rounded.
      narrow = bits_of(float_of(rest) + 0.5F) - bits_of(0.5F);
    } else {
      narrow = (rest - 0x38000000U + 0xfffU + ((rest >> 13U) & 1U)) >> 13U;
    }
    return {static_cast<std::uint16_t>(sign | narrow)};
#endif
  }
};

/// Rounds to a float whose last bit is 1 unless it is exact. Rounded to 16 bits after that, a
/// number is as if it had been rounded once.
HORO_DEVICE float to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value) return nearest;
  auto bits = bits_of(nearest);
  const double size = value < 0 ? -value : value;
  const double size_of_nearest = nearest < 0 ? -nearest : nearest;
  if (size_of_nearest > size) --bits;
  return float_of(bits | 1U);
}

/// Converts what arithmetic has left, which is a float or a double.
template <typename To>
struct Round {
  HORO_DEVICE static To of(float value) { return Narrow<To>::of(value); }

  HORO_DEVICE static To of(double value) { return Narrow<To>::of(to_odd(value)); }
};

template <>
struct Round<float> {
  HORO_DEVICE static float of(float value) { return value; }

  HORO_DEVICE static float of(double value) { return static_cast<float>(value); }
};

template <>
struct Round<double> {
  HORO_DEVICE static double of(double value) { return value; }
};

/// The type in which elements of `T` are computed: float for 16 bits.
template <typename T>
struct Wide {
  using Type = T;
};

template <>
struct Wide<Half> {
  using Type = float;
};

template <>
struct Wide<Brain> {
  using Type = float;
};

}  // namespace horo::runtime::device_code
