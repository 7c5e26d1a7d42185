// SPDX-License-Identifier: Apache-2.0
// What kernels are written in. One source is compiled for devices (by nvcc or hipcc, as C++17) and
// for the host, where tests run every kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__HIP__)
#include <hip/hip_runtime.h>
#endif

#if defined(__CUDACC__) || defined(__HIP__)
#define HORO_DEVICE __host__ __device__ __forceinline__
#else
#define HORO_DEVICE inline
#endif

#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define HORO_ON_DEVICE 1
#define HORO_UNROLL _Pragma("unroll 4")
#else
#define HORO_ON_DEVICE 0
#define HORO_UNROLL
#include <cstring>
#endif

namespace horo::runtime::device_code {

/// Threads of a block of every kernel.
inline constexpr unsigned kThreads = 256;

/// Bytes of one access.
inline constexpr std::uint64_t kWide = 16;

/// One thread of a kernel.
struct Place {
  unsigned block = 0;
  unsigned blocks = 1;
  unsigned thread = 0;
};

/// Some elements that are read or written at once. Their size is a divisor or a multiple of 16.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount < kWide ? sizeof(T) * kCount : kWide) Group {
  T at[kCount];
};

/// On a device, the address is a multiple of the type's alignment.
template <typename T>
HORO_DEVICE T load(const void* from) {
#if HORO_ON_DEVICE
  return *static_cast<const T*>(from);
#else
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
#endif
}

template <typename T>
HORO_DEVICE void store(void* to, const T& value) {
#if HORO_ON_DEVICE
  *static_cast<T*>(to) = value;
#else
  std::memcpy(to, &value, sizeof value);
#endif
}

HORO_DEVICE std::uint64_t address(const void* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

template <typename T>
HORO_DEVICE T smaller(T a, T b) {
  return a < b ? a : b;
}

/// Elements before the first whose address is a multiple of 16, at most `count`.
template <typename T>
HORO_DEVICE std::uint64_t elements_before_wide(const T* memory, std::uint64_t count) {
  const auto off = address(memory) % kWide;
  return off == 0 ? 0 : smaller<std::uint64_t>(count, (kWide - off) / sizeof(T));
}

}  // namespace horo::runtime::device_code
