// SPDX-License-Identifier: Apache-2.0
/// The C++ types of tensor elements.
#pragma once

#if __cplusplus < 202002L
#error "horo.hpp needs C++20; horo.h is for C and older C++"
#endif

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <horo/horo.h>

namespace horo {
inline namespace v1 {

/// The bits of a half-precision number (IEEE 754 binary16). C++20 has no such type; convert with
/// another library.
struct Float16 {
  std::uint16_t bits;
};

/// The bits of a bfloat16: the upper half of a float.
struct BFloat16 {
  std::uint16_t bits;
};

/// The horo_dtype of T, or -1 when there is none.
template <class T>
consteval int dtype_of() noexcept {
  if constexpr (std::same_as<T, float>) {
    return HORO_FLOAT32;
  } else if constexpr (std::same_as<T, double>) {
    return HORO_FLOAT64;
  } else if constexpr (std::same_as<T, Float16>) {
    return HORO_FLOAT16;
  } else if constexpr (std::same_as<T, BFloat16>) {
    return HORO_BFLOAT16;
  } else if constexpr (std::same_as<T, bool>) {
    return HORO_BOOL;
  } else if constexpr (std::signed_integral<T>) {
    return sizeof(T) == 1   ? HORO_INT8
           : sizeof(T) == 2 ? HORO_INT16
           : sizeof(T) == 4 ? HORO_INT32
                            : HORO_INT64;
  } else if constexpr (std::unsigned_integral<T> && sizeof(T) <= 2) {
    return sizeof(T) == 1 ? HORO_UINT8 : HORO_UINT16;
  } else {
    return -1;
  }
}

/// The types that a tensor may have: float, double, Float16, BFloat16, bool, signed integers, and
/// unsigned integers of one or two bytes.
template <class T>
concept Element = dtype_of<T>() >= 0;

}  // namespace v1
}  // namespace horo
