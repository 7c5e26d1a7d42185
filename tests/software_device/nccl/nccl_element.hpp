// SPDX-License-Identifier: Apache-2.0
// The element types of NCCL and their arithmetic, written as a reference: slow and plain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace horo::software_nccl {

/// Layout of a floating-point type of at most 16 bits.
struct SmallFloat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  bool has_infinity = true;  ///< Without it, the highest exponent holds numbers and one NaN.
};

inline constexpr SmallFloat kHalf{5, 10};
inline constexpr SmallFloat kBfloat16{8, 7};
inline constexpr SmallFloat kFloat8e4m3{4, 3, false};
inline constexpr SmallFloat kFloat8e5m2{5, 2};

double decode(std::uint32_t bits, SmallFloat type);
/// Rounds to nearest, ties to even. What is too large becomes infinity, or without infinity the
/// largest number.
std::uint32_t encode(double value, SmallFloat type);

/// Bytes of an element of ncclDataType_t; 0: there is no such type.
std::size_t size_of(int type);

/// ncclSum to ncclAvg.
constexpr bool is_op(int op) {
  return op >= 0 && op <= 4;
}

/// `out[i]` becomes the reduction of all `in[r][i]`, in the order of ranks. Floats of 16 bits and
/// less are added as doubles and rounded once, which NCCL does not promise.
void reduce(std::byte* out, std::span<const std::byte* const> in, std::uint64_t count, int type,
            int op);

}  // namespace horo::software_nccl
