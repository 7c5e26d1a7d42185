// SPDX-License-Identifier: Apache-2.0
// Scalar products and weighted sums in float64, for Adasum. Sixteen elements at a time whatever the
// width of a vector, so that all instruction sets add the same numbers in the same order.
// See vector.hpp for why all is internal.
#pragma once

#include "runtime/backends/shm/kernels/table.hpp"
#include "runtime/backends/shm/kernels/vector.hpp"

namespace horo::kernels {
namespace {

using Doubles = Vec<double>;

constexpr std::size_t kBlock = 16;  // elements
constexpr std::size_t kDoubles = kBlock * sizeof(double) / kWidth;

using HalfFloats = Vec<float, kWidth / 2>;

/// A vector of float32 as two halves that are as many elements as a vector of float64.
struct FloatPair {
  HalfFloats low;
  HalfFloats high;
};

/// Sixteen elements as float64, in their order.
struct Block {
  Doubles v[kDoubles];
};

template <typename T>
HORO_KERNEL_INLINE Block widened(const char* from) {
  Block block;
  if constexpr (__is_same(typename T::Lane, double)) {
    for (std::size_t i = 0; i < kDoubles; ++i) block.v[i] = T::load(from + i * kWidth);
  } else {
    for (std::size_t i = 0; i < kDoubles; i += 2) {
      const auto floats = __builtin_bit_cast(FloatPair, T::load(from + i / 2 * T::kBytes));
      block.v[i] = __builtin_convertvector(floats.low, Doubles);
      block.v[i + 1] = __builtin_convertvector(floats.high, Doubles);
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
      const FloatPair pair{__builtin_convertvector(block.v[i], HalfFloats),
                           __builtin_convertvector(block.v[i + 1], HalfFloats)};
      T::store(to + i / 2 * T::kBytes, canonical(__builtin_bit_cast(Floats, pair)));
    }
  }
}

template <typename T>
HORO_KERNEL_INLINE Block weighted_block(const Weighted& group, std::size_t at) {
  const auto* const* src = reinterpret_cast<const char* const*>(group.src);
  Block sum = widened<T>(src[0] + at);
  for (std::size_t i = 0; i < kDoubles; ++i) sum.v[i] *= group.weights[0];
  for (int k = 1; k < group.n; ++k) {
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

template <typename T>
void dots(DotsState& state, const Weighted& a, const Weighted& b, std::size_t count) {
  constexpr std::size_t kBytes = kBlock * sizeof(typename T::Stored);
  const std::size_t bytes = count * sizeof(typename T::Stored);
  DotsSums sums;
  static_assert(sizeof sums == sizeof state.lanes);
  __builtin_memcpy(&sums, state.lanes, sizeof sums);
  std::size_t at = 0;
  for (; bytes - at >= kBytes; at += kBytes)
    add_products(sums, weighted_block<T>(a, at), weighted_block<T>(b, at));
  if (at < bytes) {
    add_products(sums, weighted_rest<T>(a, at, bytes - at), weighted_rest<T>(b, at, bytes - at));
  }
  __builtin_memcpy(state.lanes, &sums, sizeof sums);
}

template <typename T>
void weighted_sum(void* const* dst, int ndst, const Weighted& group, std::size_t count) {
  constexpr std::size_t kBytes = kBlock * sizeof(typename T::Stored);
  const std::size_t bytes = count * sizeof(typename T::Stored);
  std::size_t at = 0;
  for (; bytes - at >= kBytes; at += kBytes) {
    const Block sum = weighted_block<T>(group, at);
    for (int d = 0; d < ndst; ++d) store_narrowed<T>(static_cast<char*>(dst[d]) + at, sum);
  }
  if (at == bytes) return;
  char lanes[kBytes];
  store_narrowed<T>(lanes, weighted_rest<T>(group, at, bytes - at));
  for (int d = 0; d < ndst; ++d)
    __builtin_memcpy(static_cast<char*>(dst[d]) + at, lanes, bytes - at);
}

}  // namespace
}  // namespace horo::kernels
