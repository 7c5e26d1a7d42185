// SPDX-License-Identifier: Apache-2.0
// Copies around the cache. See vector.hpp for why all is internal.
#pragma once

#include "runtime/kernels/vector.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace horo::kernels {
namespace {

#if defined(__SSE2__)

#if HORO_KERNEL_WIDTH == 64
HORO_KERNEL_INLINE void stream(char* to, Vec<long long> v) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), v);
}
#elif HORO_KERNEL_WIDTH == 32
HORO_KERNEL_INLINE void stream(char* to, Vec<long long> v) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), v);
}
#else
HORO_KERNEL_INLINE void stream(char* to, Vec<long long> v) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), v);
}
#endif

void stream_copy(void* dst, const void* src, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kStep = 2 * kLine;
  constexpr std::size_t kVectors = kStep / kWidth;
  char* to = static_cast<char*>(dst);
  const char* from = static_cast<const char*>(src);
  std::size_t at = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (bytes < at + kStep) {
    __builtin_memcpy(to, from, bytes);
    return;
  }
  __builtin_memcpy(to, from, at);
  for (; bytes - at >= kStep; at += kStep) {
    Vec<long long> step[kVectors];
    for (std::size_t i = 0; i < kVectors; ++i) {
      step[i] = load_bytes<Vec<long long>>(from + at + i * kWidth);
    }
    for (std::size_t i = 0; i < kVectors; ++i) stream(to + at + i * kWidth, step[i]);
  }
  __builtin_memcpy(to + at, from + at, bytes - at);
  _mm_sfence();  // a streaming store may otherwise be seen after the flag that announces it
}

#else

void stream_copy(void* dst, const void* src, std::size_t bytes) {
  __builtin_memcpy(dst, src, bytes);
}

#endif

}  // namespace
}  // namespace horo::kernels
