// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

#include "runtime/device/cuda/copy_kernels.hpp"

namespace horo::runtime {

namespace {

constexpr int kThreads = 256;

template <typename To, typename From, typename Factor>
__device__ To convert(From value, Factor scale) {
  return static_cast<To>(static_cast<Factor>(value) * scale);
}

/// Position of the tensor that a tile belongs to: the last that begins at or before it.
__device__ int tensor_of(const CopyTable& table, std::uint32_t tile) {
  int low = 0;
  int high = table.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (table.first_tile[middle] <= tile) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

template <typename From, typename To, typename Factor>
__global__ void convert_kernel(const __grid_constant__ CopyTable table, void* buffer, CopyWay way,
                               Factor scale) {
  const int tensor = tensor_of(table, blockIdx.x);
  const auto begin = (blockIdx.x - table.first_tile[tensor]) * CopyTable::kTile;
  const auto end = min(begin + CopyTable::kTile, table.elements[tensor]);
  const auto offset = table.offset[tensor];
  const bool in = way == CopyWay::into_buffer;
  const From* from = in ? static_cast<const From*>(table.memory[tensor])
                        : static_cast<const From*>(buffer) + offset;
  To* to = in ? static_cast<To*>(buffer) + offset : static_cast<To*>(table.memory[tensor]);
  for (auto i = begin + threadIdx.x; i < end; i += kThreads)
    to[i] = convert<To, From, Factor>(from[i], scale);
}

/// Without a conversion: `T` is only as wide as an element.
template <typename T>
__global__ void move_kernel(const __grid_constant__ CopyTable table, void* buffer, CopyWay way) {
  const int tensor = tensor_of(table, blockIdx.x);
  const auto begin = (blockIdx.x - table.first_tile[tensor]) * CopyTable::kTile;
  const auto end = min(begin + CopyTable::kTile, table.elements[tensor]);
  T* at_buffer = static_cast<T*>(buffer) + table.offset[tensor];
  T* at_tensor = static_cast<T*>(table.memory[tensor]);
  const T* from = way == CopyWay::into_buffer ? at_tensor : at_buffer;
  T* to = way == CopyWay::into_buffer ? at_buffer : at_tensor;
  constexpr auto kVector = sizeof(uint4) / sizeof(T);
  const auto address =
      reinterpret_cast<std::uintptr_t>(from + begin) | reinterpret_cast<std::uintptr_t>(to + begin);
  auto rest = begin;
  if (address % sizeof(uint4) == 0) {
    const auto vectors = (end - begin) / kVector;
    for (auto v = static_cast<std::uint64_t>(threadIdx.x); v < vectors; v += kThreads)
      reinterpret_cast<uint4*>(to + begin)[v] = reinterpret_cast<const uint4*>(from + begin)[v];
    rest += vectors * kVector;
  }
  for (auto i = rest + threadIdx.x; i < end; i += kThreads) to[i] = from[i];
}

template <typename T>
bool launch_move(const CopyTable& table, void* buffer, CopyWay way, cudaStream_t stream) {
  move_kernel<T><<<table.tiles, kThreads, 0, stream>>>(table, buffer, way);
  return true;
}

template <typename From, typename To>
bool launch_convert(const CopyTable& table, void* buffer, CopyWay way, double scale,
                    cudaStream_t stream) {
  using Factor =
      std::conditional_t<std::is_same_v<From, double> || std::is_same_v<To, double>, double, float>;
  convert_kernel<From, To, Factor>
      <<<table.tiles, kThreads, 0, stream>>>(table, buffer, way, static_cast<Factor>(scale));
  return true;
}

template <typename From>
bool launch_from(const CopyTable& table, void* buffer, CopyWay way, DType to, double scale,
                 cudaStream_t stream) {
  if (to == DType::f16) return launch_convert<From, __half>(table, buffer, way, scale, stream);
  if (to == DType::bf16)
    return launch_convert<From, __nv_bfloat16>(table, buffer, way, scale, stream);
  if (to == DType::f32) return launch_convert<From, float>(table, buffer, way, scale, stream);
  if (to == DType::f64) return launch_convert<From, double>(table, buffer, way, scale, stream);
  return false;
}

}  // namespace

bool launch_copy(const CopyTable& table, void* buffer, CopyWay way, DType from, DType to,
                 double scale, StreamHandle handle) {
  const auto stream = static_cast<cudaStream_t>(handle);
  if (from == to && scale == 1) {
    switch (size_of(from)) {
      case 1:
        return launch_move<std::uint8_t>(table, buffer, way, stream);
      case 2:
        return launch_move<std::uint16_t>(table, buffer, way, stream);
      case 4:
        return launch_move<std::uint32_t>(table, buffer, way, stream);
      case 8:
        return launch_move<std::uint64_t>(table, buffer, way, stream);
    }
    return false;
  }
  if (from == DType::f16) return launch_from<__half>(table, buffer, way, to, scale, stream);
  if (from == DType::bf16) return launch_from<__nv_bfloat16>(table, buffer, way, to, scale, stream);
  if (from == DType::f32) return launch_from<float>(table, buffer, way, to, scale, stream);
  if (from == DType::f64) return launch_from<double>(table, buffer, way, to, scale, stream);
  return false;
}

}  // namespace horo::runtime
