// SPDX-License-Identifier: Apache-2.0
// Reductions of integers that leave the type on the way: averages, and anything scaled.
// See vector.hpp for why all is internal.
#pragma once

#include "runtime/kernels/vector_kernels.hpp"

namespace horo::kernels {
namespace {

template <typename E>
struct IntegerOf {
  static constexpr bool kSigned = static_cast<E>(-1) < static_cast<E>(0);
  static constexpr int kBits = 8 * sizeof(E);
  static constexpr E kMost =
      kSigned ? static_cast<E>((std::uint64_t{1} << (kBits - 1)) - 1) : static_cast<E>(-1);
  static constexpr E kLeast = kSigned ? static_cast<E>(-kMost - 1) : static_cast<E>(0);
};

template <typename E>
HORO_KERNEL_INLINE E load_one(const void* from, std::size_t i) {
  E value;
  __builtin_memcpy(&value, static_cast<const char*>(from) + i * sizeof(E), sizeof value);
  return value;
}

/// Toward zero, to the nearest end of the range where it does not fit; NaN gives 0.
template <typename E>
HORO_KERNEL_INLINE E truncated(double value) {
  using Limits = IntegerOf<E>;
  if (value != value) return 0;
  if (value <= static_cast<double>(Limits::kLeast)) return Limits::kLeast;
  // 2^63 - 1 has no double of its own and rounds up to 2^63: not below means too large there too.
  if (value >= static_cast<double>(Limits::kMost)) return Limits::kMost;
  return static_cast<E>(value);
}

template <typename E>
HORO_KERNEL_INLINE E scaled(E value, double factor) {
  return factor == 1 ? value : truncated<E>(static_cast<double>(value) * factor);
}

/// Sum and product wrap modulo 2^bits.
template <typename E>
HORO_KERNEL_INLINE E combine_one(ReduceOp op, E a, E b) {
  const auto left = static_cast<std::uint64_t>(a);
  const auto right = static_cast<std::uint64_t>(b);
  switch (op) {
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return b > a ? b : a;
    case ReduceOp::product:
      return static_cast<E>(left * right);
    case ReduceOp::average:
    case ReduceOp::sum:
    case ReduceOp::adasum:  // Floating point only.
      break;
  }
  return static_cast<E>(left + right);
}

template <typename E>
void reduce_scaled_integers(const Reduction& what, void* const* dst, int ndst,
                            const void* const* src, int n, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    E acc = scaled(load_one<E>(src[0], i), what.prescale);
    for (int k = 1; k < n; ++k) {
      acc = combine_one<E>(what.op, acc, scaled(load_one<E>(src[k], i), what.prescale));
    }
    acc = scaled(acc, what.postscale);
    for (int d = 0; d < ndst; ++d) store_bytes(static_cast<char*>(dst[d]) + i * sizeof(E), acc);
  }
}

/// `Lane` is what unscaled elements are computed in.
template <typename E, typename Lane, typename Op>
void reduce_integers(const Reduction& what, void* const* dst, int ndst, const void* const* src,
                     int n, std::size_t count) {
  if (what.prescale != 1 || what.postscale != 1) {
    return reduce_scaled_integers<E>(what, dst, ndst, src, n, count);
  }
  reduce_vectors<Plain<Lane>, Op>(what, dst, ndst, src, n, count);
}

template <typename E>
struct WideOf {
  using type = std::int64_t;  // holds the sum of 2^31 elements of 32 bits
};

template <>
struct WideOf<std::int64_t> {
  using type = __int128;
};

template <typename E>
HORO_KERNEL_INLINE E divided(typename WideOf<E>::type sum, const Reduction& what) {
  if (what.postscale != 1) {
    return truncated<E>(static_cast<double>(sum) * what.postscale / what.ranks);
  }
  if (sum == static_cast<std::int64_t>(sum))
    return static_cast<E>(static_cast<std::int64_t>(sum) / what.ranks);
  return static_cast<E>(sum / what.ranks);
}

/// The exact sum, divided by the ranks toward zero.
template <typename E>
void average_integers(const Reduction& what, void* const* dst, int ndst, const void* const* src,
                      int n, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    typename WideOf<E>::type sum = 0;
    for (int k = 0; k < n; ++k) sum += scaled(load_one<E>(src[k], i), what.prescale);
    const E result = divided<E>(sum, what);
    for (int d = 0; d < ndst; ++d) store_bytes(static_cast<char*>(dst[d]) + i * sizeof(E), result);
  }
}

}  // namespace
}  // namespace horo::kernels
