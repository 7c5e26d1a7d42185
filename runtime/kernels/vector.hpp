// SPDX-License-Identifier: Apache-2.0
// Vectors of HORO_KERNEL_WIDTH bytes and how each element type is loaded into and stored from them.
//
// This header and those beside it are compiled once per instruction set, with different flags. So
// everything in them has internal linkage, and they include nothing that has inline functions of
// external linkage: the linker would keep one copy, perhaps of instructions this CPU lacks.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef HORO_KERNEL_WIDTH
#define HORO_KERNEL_WIDTH 16
#endif
#define HORO_KERNEL_INLINE [[gnu::always_inline]] static inline

namespace horo::kernels {
namespace {

constexpr std::size_t kWidth = HORO_KERNEL_WIDTH;

template <typename E, std::size_t kBytes>
struct VectorOf {
  typedef E type
      __attribute__((vector_size(kBytes)));  // NOLINT(modernize-use-using): the attribute needs it
};

template <typename E, std::size_t kBytes = kWidth>
using Vec = typename VectorOf<E, kBytes>::type;

using Words = Vec<std::uint32_t>;
using Floats = Vec<float>;
using Halves = Vec<std::uint16_t, kWidth / 2>;

template <typename V>
HORO_KERNEL_INLINE V load_bytes(const char* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <typename V>
HORO_KERNEL_INLINE void store_bytes(char* to, V value) {
  __builtin_memcpy(to, &value, sizeof value);
}

/// Every NaN becomes the one quiet NaN: which operand's payload survives an addition depends on the
/// order in which the compiler puts the operands.
HORO_KERNEL_INLINE Floats canonical(Floats v) {
  return v == v ? v : Floats{} + __builtin_nanf("");
}

HORO_KERNEL_INLINE Vec<double> canonical(Vec<double> v) {
  return v == v ? v : Vec<double>{} + __builtin_nan("");
}

#if defined(__AVX2__) && HORO_KERNEL_WIDTH == 32

HORO_KERNEL_INLINE Words widen_bits(Halves h) {
  return __builtin_bit_cast(Words, _mm256_cvtepu16_epi32(__builtin_bit_cast(__m128i, h)));
}

/// `w` holds 16 bits per lane.
HORO_KERNEL_INLINE Halves narrow_bits(Words w) {
  const auto all = __builtin_bit_cast(__m256i, w);
  return __builtin_bit_cast(
      Halves, _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
}

#elif defined(__AVX512F__) && HORO_KERNEL_WIDTH == 64

HORO_KERNEL_INLINE Words widen_bits(Halves h) {
  return __builtin_bit_cast(Words, _mm512_cvtepu16_epi32(__builtin_bit_cast(__m256i, h)));
}

/// `w` holds 16 bits per lane.
HORO_KERNEL_INLINE Halves narrow_bits(Words w) {
  return __builtin_bit_cast(Halves, _mm512_cvtepi32_epi16(__builtin_bit_cast(__m512i, w)));
}

#elif defined(__aarch64__) && HORO_KERNEL_WIDTH == 16

// Intrinsics, because g++ 12 converts these vectors one element at a time.
HORO_KERNEL_INLINE Words widen_bits(Halves h) {
  return __builtin_bit_cast(Words, vmovl_u16(__builtin_bit_cast(uint16x4_t, h)));
}

/// `w` holds 16 bits per lane.
HORO_KERNEL_INLINE Halves narrow_bits(Words w) {
  return __builtin_bit_cast(Halves, vmovn_u32(__builtin_bit_cast(uint32x4_t, w)));
}

#else

HORO_KERNEL_INLINE Words widen_bits(Halves h) {
  return __builtin_convertvector(h, Words);
}

/// `w` holds 16 bits per lane.
HORO_KERNEL_INLINE Halves narrow_bits(Words w) {
  return __builtin_convertvector(w, Halves);
}

#endif

#if defined(__F16C__) && HORO_KERNEL_WIDTH == 32

HORO_KERNEL_INLINE Floats widen_half(Halves h) {
  return _mm256_cvtph_ps(__builtin_bit_cast(__m128i, h));
}

HORO_KERNEL_INLINE Halves narrow_half(Floats f) {
  return __builtin_bit_cast(Halves, _mm256_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT));
}

#elif defined(__AVX512F__) && HORO_KERNEL_WIDTH == 64

HORO_KERNEL_INLINE Floats widen_half(Halves h) {
  return _mm512_cvtph_ps(__builtin_bit_cast(__m256i, h));
}

HORO_KERNEL_INLINE Halves narrow_half(Floats f) {
  return __builtin_bit_cast(Halves, _mm512_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT));
}

#elif defined(__aarch64__) && HORO_KERNEL_WIDTH == 16

// Every aarch64 converts float16, and rounds to nearest, ties to even, unless the program has
// changed that for itself.
HORO_KERNEL_INLINE Floats widen_half(Halves h) {
  return __builtin_bit_cast(Floats, vcvt_f32_f16(__builtin_bit_cast(float16x4_t, h)));
}

HORO_KERNEL_INLINE Halves narrow_half(Floats f) {
  return __builtin_bit_cast(Halves, vcvt_f16_f32(__builtin_bit_cast(float32x4_t, f)));
}

#else

/// Exact: float32 holds every float16. A subnormal is made by subtracting the implicit one that the
/// exponent of a normal number would stand for.
HORO_KERNEL_INLINE Floats widen_half(Halves h) {
  const Words bits = widen_bits(h);
  const Words magnitude = bits & 0x7fffU;
  Words out = (magnitude << 13) + (112U << 23);
  out = magnitude >= 0x7c00U ? out + (112U << 23) : out;
  const Floats small = __builtin_bit_cast(Floats, out + (1U << 23)) -
                       __builtin_bit_cast(Floats, Words{} + (113U << 23));
  out = magnitude < 0x400U ? __builtin_bit_cast(Words, small) : out;
  return __builtin_bit_cast(Floats, out | ((bits & 0x8000U) << 16));
}

/// Nearest, ties to even. Subnormals are rounded by an addition that puts their last place at the
/// last place of a float32; the others by adding just under half of the last place, and the rest of
/// it where the kept part is odd.
HORO_KERNEL_INLINE Halves narrow_half(Floats f) {
  const Words bits = __builtin_bit_cast(Words, f);
  const Words magnitude = bits & 0x7fffffffU;
  const Words half_of_one = Words{} + (126U << 23);
  const Words small = __builtin_bit_cast(Words, __builtin_bit_cast(Floats, magnitude) +
                                                    __builtin_bit_cast(Floats, half_of_one)) -
                      half_of_one;
  Words out = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  out = magnitude < (113U << 23) ? small : out;
  const Words special = magnitude > (255U << 23) ? Words{} + 0x7e00U : Words{} + 0x7c00U;
  out = magnitude >= (143U << 23) ? special : out;
  return narrow_bits(out | ((bits & 0x80000000U) >> 16));
}

#endif

HORO_KERNEL_INLINE Floats widen_bfloat(Halves h) {
  return __builtin_bit_cast(Floats, widen_bits(h) << 16);
}

/// Nearest, ties to even; `f` holds no NaN but the canonical one, which stays itself.
HORO_KERNEL_INLINE Halves narrow_bfloat(Floats f) {
  const Words bits = __builtin_bit_cast(Words, f);
  return narrow_bits((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// An element type as the kernels see it: what lies in memory, and the vector it is computed in.
template <typename E>
struct Plain {
  using Stored = E;
  using Lane = E;
  using V = Vec<E>;
  static constexpr std::size_t kBytes = kWidth;  // in memory, per vector

  HORO_KERNEL_INLINE V load(const char* from) { return load_bytes<V>(from); }

  HORO_KERNEL_INLINE void store(char* to, V v) { store_bytes(to, v); }
};

struct Half {
  using Stored = std::uint16_t;
  using Lane = float;
  using V = Floats;
  static constexpr std::size_t kBytes = kWidth / 2;

  HORO_KERNEL_INLINE V load(const char* from) { return widen_half(load_bytes<Halves>(from)); }

  HORO_KERNEL_INLINE void store(char* to, V v) { store_bytes(to, narrow_half(v)); }
};

struct Bfloat {
  using Stored = std::uint16_t;
  using Lane = float;
  using V = Floats;
  static constexpr std::size_t kBytes = kWidth / 2;

  HORO_KERNEL_INLINE V load(const char* from) { return widen_bfloat(load_bytes<Halves>(from)); }

  HORO_KERNEL_INLINE void store(char* to, V v) { store_bytes(to, narrow_bfloat(v)); }
};

/// One truth value a byte: whatever is not 0 counts as 1.
struct Truth {
  using Stored = std::uint8_t;
  using Lane = std::uint8_t;
  using V = Vec<std::uint8_t>;
  static constexpr std::size_t kBytes = kWidth;

  HORO_KERNEL_INLINE V load(const char* from) {
    const V v = load_bytes<V>(from);
    return __builtin_bit_cast(V, v != V{}) & static_cast<std::uint8_t>(1);
  }

  HORO_KERNEL_INLINE void store(char* to, V v) { store_bytes(to, v); }
};

/// Lanes that are numbers with a fraction: they are scaled and their NaN is made canonical.
template <typename Lane>
constexpr bool kIsFloating = false;
template <>
constexpr bool kIsFloating<float> = true;
template <>
constexpr bool kIsFloating<double> = true;

}  // namespace
}  // namespace horo::kernels
