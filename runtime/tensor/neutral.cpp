// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/neutral.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace horo::runtime {

namespace {

template <typename T>
void fill(void* memory, std::uint64_t elements, T value) {
  auto* const at = static_cast<T*>(memory);
  std::fill(at, at + elements, value);
}

template <typename T>
T neutral(ReduceOp op) {
  using Limits = std::numeric_limits<T>;
  if (op == ReduceOp::product) return T{1};
  if constexpr (Limits::has_infinity)
    return op == ReduceOp::min ? Limits::infinity() : -Limits::infinity();
  return op == ReduceOp::min ? Limits::max() : Limits::lowest();
}

/// The same for 16-bit floating point, by the bits of 1 and infinity.
std::uint16_t neutral_bits(ReduceOp op, std::uint16_t one, std::uint16_t infinity) {
  constexpr std::uint16_t kSign = 0x8000;
  if (op == ReduceOp::product) return one;
  return op == ReduceOp::min ? infinity : static_cast<std::uint16_t>(infinity | kSign);
}

}  // namespace

void fill_neutral(DType dtype, ReduceOp op, void* memory, std::uint64_t elements) {
  if (op == ReduceOp::sum || op == ReduceOp::average || op == ReduceOp::adasum) {
    std::memset(memory, 0, elements * size_of(dtype));
    return;
  }
  switch (dtype) {
    case DType::u8:
      return fill(memory, elements, neutral<std::uint8_t>(op));
    case DType::i8:
      return fill(memory, elements, neutral<std::int8_t>(op));
    case DType::u16:
      return fill(memory, elements, neutral<std::uint16_t>(op));
    case DType::i16:
      return fill(memory, elements, neutral<std::int16_t>(op));
    case DType::i32:
      return fill(memory, elements, neutral<std::int32_t>(op));
    case DType::i64:
      return fill(memory, elements, neutral<std::int64_t>(op));
    case DType::f16:
      return fill(memory, elements, neutral_bits(op, 0x3c00, 0x7c00));
    case DType::f32:
      return fill(memory, elements, neutral<float>(op));
    case DType::f64:
      return fill(memory, elements, neutral<double>(op));
    case DType::boolean:
      return fill(memory, elements, static_cast<std::uint8_t>(op == ReduceOp::max ? 0 : 1));
    case DType::bf16:
      return fill(memory, elements, neutral_bits(op, 0x3f80, 0x7f80));
  }
}

}  // namespace horo::runtime
