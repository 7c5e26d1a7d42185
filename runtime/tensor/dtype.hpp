// SPDX-License-Identifier: Apache-2.0
// Element types and reduction operations, with the numbers of the C ABI (horo.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace horo::runtime {

enum class DType : std::uint8_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  i32 = 4,
  i64 = 5,
  f16 = 6,
  f32 = 7,
  f64 = 8,
  boolean = 9,  ///< One byte; only min (and) and max (or) reduce it.
  bf16 = 10,
};

inline constexpr int kDTypes = 11;

enum class ReduceOp : std::uint8_t {
  average = 0,
  sum = 1,
  adasum = 2,
  min = 3,
  max = 4,
  product = 5,
};

inline constexpr int kReduceOps = 6;  ///< One past the highest number.

/// Whether `value` is one of the numbers above. Values from the C ABI or from a peer are checked
/// before they are used.
constexpr bool is_dtype(int value) {
  return value >= 0 && value < kDTypes;
}

constexpr bool is_reduce_op(int value) {
  return value >= 0 && value < kReduceOps;
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::i8:
    case DType::boolean:
      return 1;
    case DType::u16:
    case DType::i16:
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::i32:
    case DType::f32:
      return 4;
    case DType::i64:
    case DType::f64:
      return 8;
  }
  return 0;
}

/// Stable lower-case name, for messages and JSON: "float32".
constexpr std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return "uint8";
    case DType::i8:
      return "int8";
    case DType::u16:
      return "uint16";
    case DType::i16:
      return "int16";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
    case DType::f16:
      return "float16";
    case DType::f32:
      return "float32";
    case DType::f64:
      return "float64";
    case DType::boolean:
      return "bool";
    case DType::bf16:
      return "bfloat16";
  }
  return "unknown";
}

constexpr std::string_view name(ReduceOp op) {
  switch (op) {
    case ReduceOp::average:
      return "average";
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::adasum:
      return "adasum";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
    case ReduceOp::product:
      return "product";
  }
  return "unknown";
}

}  // namespace horo::runtime
