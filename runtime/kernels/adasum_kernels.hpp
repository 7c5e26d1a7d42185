// SPDX-License-Identifier: Apache-2.0
// Scalar products and weighted sums in float64, for Adasum. Sixteen elements at a time whatever the
// width of a vector, so that all instruction sets add the same numbers in the same order.
// See vector.hpp for why all is internal.
#pragma once

#include "runtime/kernels/kernel_table.hpp"
#include "runtime/kernels/vector.hpp"

namespace horo::kernels {
namespace {

using Doubles = Vec<double>;

constexpr std::size_t kBlock = 16;  // elements
constexpr std::size_t kDoubles = kBlock * sizeof(double) / kWidth;

using HalfFloats = Vec<float, kWidth / 2>;

/// The halves of a vector of float32, each as many elements as a vector of float64; in registers.
#if HORO_KERNEL_WIDTH == 64
HORO_KERNEL_INLINE HalfFloats low_half(Floats v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
}

HORO_KERNEL_INLINE HalfFloats high_half(Floats v) {
  return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
}

HORO_KERNEL_INLINE Floats joined(HalfFloats low, HalfFloats high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
#elif HORO_KERNEL_WIDTH == 32
HORO_KERNEL_INLINE HalfFloats low_half(Floats v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3);
}

HORO_KERNEL_INLINE HalfFloats high_half(Floats v) {
  return __builtin_shufflevector(v, v, 4, 5, 6, 7);
}

HORO_KERNEL_INLINE Floats joined(HalfFloats low, HalfFloats high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}
#else
HORO_KERNEL_INLINE HalfFloats low_half(Floats v) {
  return __builtin_shufflevector(v, v, 0, 1);
}

HORO_KERNEL_INLINE HalfFloats high_half(Floats v) {
  return __builtin_shufflevector(v, v, 2, 3);
}

HORO_KERNEL_INLINE Floats joined(HalfFloats low, HalfFloats high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3);
}
#endif

/// Intrinsics, because g++ 12 splits a conversion of vectors into several narrower ones.
#if HORO_KERNEL_WIDTH == 64
HORO_KERNEL_INLINE Doubles widened_half(HalfFloats v) {
  return __builtin_bit_cast(Doubles, _mm512_cvtps_pd(__builtin_bit_cast(__m256, v)));
}
#elif defined(__AVX2__)
HORO_KERNEL_INLINE Doubles widened_half(HalfFloats v) {
  return __builtin_bit_cast(Doubles, _mm256_cvtps_pd(__builtin_bit_cast(__m128, v)));
}
#elif defined(__aarch64__)
HORO_KERNEL_INLINE Doubles widened_half(HalfFloats v) {
  return __builtin_bit_cast(Doubles, vcvt_f64_f32(__builtin_bit_cast(float32x2_t, v)));
}
#else
HORO_KERNEL_INLINE Doubles widened_half(HalfFloats v) {
  return __builtin_convertvector(v, Doubles);
}
#endif

#if defined(__aarch64__)
HORO_KERNEL_INLINE HalfFloats narrowed(Doubles v) {
  return __builtin_bit_cast(HalfFloats, vcvt_f32_f64(__builtin_bit_cast(float64x2_t, v)));
}
#else
HORO_KERNEL_INLINE HalfFloats narrowed(Doubles v) {
  return __builtin_convertvector(v, HalfFloats);
}
#endif

/// Sixteen elements as float64, in their order.
struct Block {
  Doubles v[kDoubles];
};

template <typename T>
HORO_KERNEL_INLINE Block widened(const char* from) {
  Block block;
  if constexpr (__is_same(typename T::Lane, double)) {
    for (std::size_t i = 0; i < kDoubles; ++i) block.v[i] = T::load(from + i * kWidth);
  } else if constexpr (__is_same(typename T::Stored, float)) {
    for (std::size_t i = 0; i < kDoubles; ++i)
      block.v[i] = widened_half(load_bytes<HalfFloats>(from + i * sizeof(HalfFloats)));
  } else {
    for (std::size_t i = 0; i < kDoubles; i += 2) {
      const Floats floats = T::load(from + i / 2 * T::kBytes);
      block.v[i] = widened_half(low_half(floats));
      block.v[i + 1] = widened_half(high_half(floats));
    }
  }
  return block;
}

template <typename T>
HORO_KERNEL_INLINE void store_narrowed(char* to, const Block& block) {
  if constexpr (__is_same(typename T::Lane, double)) {
    for (std::size_t i = 0; i < kDoubles; ++i) T::store(to + i * kWidth, canonical(block.v[i]));
  } else {
    for (std::size_t i = 0; i < kDoubles; i += 2) {
      const auto floats = joined(narrowed(block.v[i]), narrowed(block.v[i + 1]));
      T::store(to + i / 2 * T::kBytes, canonical(floats));
    }
  }
}

/// `kN` is the number of inputs, or 0 where only the call knows it; 1: of weight 1.
template <typename T, int kN>
HORO_KERNEL_INLINE Block weighted_block(const Weighted& group, std::size_t at) {
  const int n = kN == 0 ? group.n : kN;
  const auto* const* src = reinterpret_cast<const char* const*>(group.src);
  Block sum = widened<T>(src[0] + at);
  if constexpr (kN == 1) return sum;
  for (std::size_t i = 0; i < kDoubles; ++i) sum.v[i] *= group.weights[0];
  for (int k = 1; k < n; ++k) {
    const Block more = widened<T>(src[k] + at);
    for (std::size_t i = 0; i < kDoubles; ++i) sum.v[i] += more.v[i] * group.weights[k];
  }
  return sum;
}

/// The elements that do not fill a block, each input's followed by zeros.
template <typename T>
HORO_KERNEL_INLINE Block weighted_rest(const Weighted& group, std::size_t at, std::size_t bytes) {
  char lanes[kBlock * sizeof(typename T::Stored)] = {};
  Block sum{};
  for (int k = 0; k < group.n; ++k) {
    __builtin_memcpy(lanes, static_cast<const char*>(group.src[k]) + at, bytes);
    const Block more = widened<T>(lanes);
    for (std::size_t i = 0; i < kDoubles; ++i) {
      const Doubles product = more.v[i] * group.weights[k];
      sum.v[i] = k == 0 ? product : sum.v[i] + product;
    }
  }
  return sum;
}

struct DotsSums {
  Block ab;
  Block aa;
  Block bb;
};

HORO_KERNEL_INLINE void add_products(DotsSums& sums, const Block& a, const Block& b) {
  for (std::size_t i = 0; i < kDoubles; ++i) {
    sums.ab.v[i] += a.v[i] * b.v[i];
    sums.aa.v[i] += a.v[i] * a.v[i];
    sums.bb.v[i] += b.v[i] * b.v[i];
  }
}

template <typename T, int kN>
void dots_of(DotsState& state, const Weighted& a, const Weighted& b, std::size_t count) {
  constexpr std::size_t kBytes = kBlock * sizeof(typename T::Stored);
  const std::size_t bytes = count * sizeof(typename T::Stored);
  DotsSums sums;
  static_assert(sizeof sums == sizeof state.lanes);
  __builtin_memcpy(&sums, state.lanes, sizeof sums);
  std::size_t at = 0;
  for (; bytes - at >= kBytes; at += kBytes)
    add_products(sums, weighted_block<T, kN>(a, at), weighted_block<T, kN>(b, at));
  if (at < bytes) {
    add_products(sums, weighted_rest<T>(a, at, bytes - at), weighted_rest<T>(b, at, bytes - at));
  }
  __builtin_memcpy(state.lanes, &sums, sizeof sums);
}

/// The first levels of a tree of ranks are worth code of their own.
template <typename T>
void dots(DotsState& state, const Weighted& a, const Weighted& b, std::size_t count) {
  if (a.n == 1 && b.n == 1 && a.weights[0] == 1 && b.weights[0] == 1)
    return dots_of<T, 1>(state, a, b, count);
  if (a.n == 2 && b.n == 2) return dots_of<T, 2>(state, a, b, count);
  dots_of<T, 0>(state, a, b, count);
}

template <typename T, int kN>
void weighted_sum_of(void* const* dst, int ndst, const Weighted& group, std::size_t count) {
  constexpr std::size_t kBytes = kBlock * sizeof(typename T::Stored);
  const std::size_t bytes = count * sizeof(typename T::Stored);
  std::size_t at = 0;
  for (; bytes - at >= kBytes; at += kBytes) {
    const Block sum = weighted_block<T, kN>(group, at);
    for (int d = 0; d < ndst; ++d) store_narrowed<T>(static_cast<char*>(dst[d]) + at, sum);
  }
  if (at == bytes) return;
  char lanes[kBytes];
  store_narrowed<T>(lanes, weighted_rest<T>(group, at, bytes - at));
  for (int d = 0; d < ndst; ++d)
    __builtin_memcpy(static_cast<char*>(dst[d]) + at, lanes, bytes - at);
}

template <typename T>
void weighted_sum(void* const* dst, int ndst, const Weighted& group, std::size_t count) {
  if (group.n == 2) return weighted_sum_of<T, 2>(dst, ndst, group, count);
  if (group.n == 4) return weighted_sum_of<T, 4>(dst, ndst, group, count);
  weighted_sum_of<T, 0>(dst, ndst, group, count);
}

}  // namespace
}  // namespace horo::kernels
