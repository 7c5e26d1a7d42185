// SPDX-License-Identifier: Apache-2.0
// Reductions computed in the lanes of a vector: all of the floating-point ones, and sum, product,
// minimum and maximum of integers that are not scaled. See vector.hpp for why all is internal.
#pragma once

#include "runtime/kernels/kernel_table.hpp"
#include "runtime/kernels/vector.hpp"

namespace horo::kernels {
namespace {

struct Sum {
  template <typename V>
  HORO_KERNEL_INLINE V apply(V a, V b) {
    return a + b;
  }
};

struct Product {
  template <typename V>
  HORO_KERNEL_INLINE V apply(V a, V b) {
    return a * b;
  }
};

#if defined(__aarch64__)

/// One instruction: -0 is less than +0, and a NaN on either side stays one.
struct Min {
  template <typename V>
  HORO_KERNEL_INLINE V apply(V a, V b) {
    return a < b ? a : b;
  }

  HORO_KERNEL_INLINE Floats apply_floating(Floats a, Floats b) {
    return __builtin_bit_cast(
        Floats, vminq_f32(__builtin_bit_cast(float32x4_t, a), __builtin_bit_cast(float32x4_t, b)));
  }

  HORO_KERNEL_INLINE Vec<double> apply_floating(Vec<double> a, Vec<double> b) {
    return __builtin_bit_cast(Vec<double>, vminq_f64(__builtin_bit_cast(float64x2_t, a),
                                                     __builtin_bit_cast(float64x2_t, b)));
  }
};

struct Max {
  template <typename V>
  HORO_KERNEL_INLINE V apply(V a, V b) {
    return a > b ? a : b;
  }

  HORO_KERNEL_INLINE Floats apply_floating(Floats a, Floats b) {
    return __builtin_bit_cast(
        Floats, vmaxq_f32(__builtin_bit_cast(float32x4_t, a), __builtin_bit_cast(float32x4_t, b)));
  }

  HORO_KERNEL_INLINE Vec<double> apply_floating(Vec<double> a, Vec<double> b) {
    return __builtin_bit_cast(Vec<double>, vmaxq_f64(__builtin_bit_cast(float64x2_t, a),
                                                     __builtin_bit_cast(float64x2_t, b)));
  }
};

#else

template <typename V>
struct BitsOf;

template <>
struct BitsOf<Floats> {
  using type = Vec<std::uint32_t>;
};

template <>
struct BitsOf<Vec<double>> {
  using type = Vec<std::uint64_t>;
};

/// Floating point: -0 is less than +0, and a NaN on either side stays one. Both come from looking
/// from both sides: where `a < b ? a : b` and `b < a ? b : a` differ, the operands are zeros of
/// different sign or one is NaN, and the bitwise OR of both is the wanted one.
struct Min {
  template <typename V>
  HORO_KERNEL_INLINE V apply(V a, V b) {
    return a < b ? a : b;
  }

  template <typename V>
  HORO_KERNEL_INLINE V apply_floating(V a, V b) {
    using Bits = typename BitsOf<V>::type;
    const V left = a < b ? a : b;
    const V right = b < a ? b : a;
    return __builtin_bit_cast(V, __builtin_bit_cast(Bits, left) | __builtin_bit_cast(Bits, right));
  }
};

/// As Min, with AND for the zeros; AND would lose a NaN, so the lanes that compare unequal to
/// themselves are set to all ones, which is one.
struct Max {
  template <typename V>
  HORO_KERNEL_INLINE V apply(V a, V b) {
    return a > b ? a : b;
  }

  template <typename V>
  HORO_KERNEL_INLINE V apply_floating(V a, V b) {
    using Bits = typename BitsOf<V>::type;
    const V left = a > b ? a : b;
    const V right = b > a ? b : a;
    const auto unordered = (a != a) | (b != b);
    return __builtin_bit_cast(V,
                              (__builtin_bit_cast(Bits, left) & __builtin_bit_cast(Bits, right)) |
                                  __builtin_bit_cast(Bits, unordered));
  }
};

#endif

template <typename T, typename Op>
HORO_KERNEL_INLINE typename T::V combine(typename T::V a, typename T::V b) {
  if constexpr (kIsFloating<typename T::Lane> && requires { Op::apply_floating(a, b); }) {
    return Op::apply_floating(a, b);
  } else {
    return Op::apply(a, b);
  }
}

/// One call's operands; offsets below are bytes from the start of each buffer.
struct Operands {
  char* const* dst;
  int ndst;
  const char* const* src;
  int n;
};

template <typename Lane>
struct Factors {
  Lane before;
  Lane after;
};

enum class Scaling { none, both };

/// `kN` is the number of inputs, or 0 where only the call knows it.
template <typename T, typename Op, Scaling kScaling, int kN>
struct VectorKernel {
  using V = typename T::V;
  using Lane = typename T::Lane;

  HORO_KERNEL_INLINE V before(V v, const Factors<Lane>& by) {
    if constexpr (kScaling == Scaling::both) v = v * by.before;
    return v;
  }

  HORO_KERNEL_INLINE V after(V v, const Factors<Lane>& by) {
    if constexpr (kScaling == Scaling::both) v = v * by.after;
    if constexpr (kIsFloating<Lane>) v = canonical(v);
    return v;
  }

  static constexpr std::size_t offset(int vector) {
    return static_cast<std::size_t>(vector) * T::kBytes;
  }

  /// `kVectors` neighbours at a time, all in registers from the first load to the last store.
  template <int kVectors>
  HORO_KERNEL_INLINE void step(const Operands& o, const Factors<Lane>& by, std::size_t at) {
    const int n = kN == 0 ? o.n : kN;
    V acc[kVectors];
    for (int v = 0; v < kVectors; ++v) acc[v] = before(T::load(o.src[0] + at + offset(v)), by);
    for (int k = 1; k < n; ++k) {
      const char* const from = o.src[k] + at;
      for (int v = 0; v < kVectors; ++v) {
        acc[v] = combine<T, Op>(acc[v], before(T::load(from + offset(v)), by));
      }
    }
    for (int v = 0; v < kVectors; ++v) acc[v] = after(acc[v], by);
    for (int d = 0; d < o.ndst; ++d) {
      char* const to = o.dst[d] + at;
      for (int v = 0; v < kVectors; ++v) T::store(to + offset(v), acc[v]);
    }
  }

  /// Less than a vector: the same computation on lanes of which only the first `bytes` are used.
  static void part(const Operands& o, const Factors<Lane>& by, std::size_t at, std::size_t bytes) {
    const int n = kN == 0 ? o.n : kN;
    char lanes[T::kBytes] = {};
    __builtin_memcpy(lanes, o.src[0] + at, bytes);
    V acc = before(T::load(lanes), by);
    for (int k = 1; k < n; ++k) {
      __builtin_memcpy(lanes, o.src[k] + at, bytes);
      acc = combine<T, Op>(acc, before(T::load(lanes), by));
    }
    T::store(lanes, after(acc, by));
    for (int d = 0; d < o.ndst; ++d) __builtin_memcpy(o.dst[d] + at, lanes, bytes);
  }

  static void run(const Operands& o, const Factors<Lane>& by, std::size_t bytes) {
    constexpr int kVectors = 4;
    std::size_t at = 0;
    for (; bytes - at >= kVectors * T::kBytes; at += kVectors * T::kBytes)
      step<kVectors>(o, by, at);
    for (; bytes - at >= T::kBytes; at += T::kBytes) step<1>(o, by, at);
    if (at < bytes) part(o, by, at, bytes - at);
  }
};

template <typename T, typename Op, Scaling kScaling>
void run_vectors(const Operands& o, const Factors<typename T::Lane>& by, std::size_t bytes) {
  // Sums and averages over two ranks are worth code of their own; the rest would only be larger.
  if constexpr (__is_same(Op, Sum)) {
    if (o.n == 2) return VectorKernel<T, Op, kScaling, 2>::run(o, by, bytes);
  }
  VectorKernel<T, Op, kScaling, 0>::run(o, by, bytes);
}

/// Multiplying by exactly one changes nothing, so both factors are applied as soon as one counts.
template <typename T, typename Op>
void reduce_vectors(const Reduction& what, void* const* dst, int ndst, const void* const* src,
                    int n, std::size_t count) {
  using Lane = typename T::Lane;
  const Operands o{reinterpret_cast<char* const*>(dst), ndst,
                   reinterpret_cast<const char* const*>(src), n};
  const std::size_t bytes = count * sizeof(typename T::Stored);
  if constexpr (kIsFloating<Lane>) {
    const double divisor = what.op == ReduceOp::average ? what.ranks : 1;
    const Factors<Lane> by{static_cast<Lane>(what.prescale),
                           static_cast<Lane>(what.postscale / divisor)};
    if (by.before != 1 || by.after != 1) return run_vectors<T, Op, Scaling::both>(o, by, bytes);
    run_vectors<T, Op, Scaling::none>(o, by, bytes);
  } else {
    run_vectors<T, Op, Scaling::none>(o, {}, bytes);
  }
}

}  // namespace
}  // namespace horo::kernels
