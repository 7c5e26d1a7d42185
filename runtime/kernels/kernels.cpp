// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/kernels.hpp"

#include <cstring>

#if defined(HORO_KERNELS_X86)
#include <cpuid.h>
#endif

#include "runtime/kernels/kernel_table.hpp"

namespace horo::kernels {

namespace {

#if defined(HORO_KERNELS_X86)
/// Asks only the processor, because a system that supports AVX2 saves these registers too. Asked
/// once, because on a virtual machine CPUID goes to the hypervisor and costs microseconds.
bool has_f16c() {
  static const bool has = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }();
  return has;
}
#endif

const KernelTable* table_of(Isa isa) {
  if (!supported(isa)) return nullptr;
  switch (isa) {
    case Isa::baseline:
      return &kBaselineKernels;
#if defined(HORO_KERNELS_X86)
    case Isa::avx2:
      return &kAvx2Kernels;
    case Isa::avx512:
      return &kAvx512Kernels;
#else
    case Isa::avx2:
    case Isa::avx512:
      return nullptr;
#endif
  }
  return nullptr;
}

/// No loop of our own, with vectors of 32 bytes, prefetches or `rep movsb`, is faster on Zen 3.
void copy_bytes(void* dst, const void* src, std::size_t bytes) {
  std::memcpy(dst, src, bytes);
}

}  // namespace

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::baseline:
#if defined(__aarch64__)
      return "neon";
#else
      return "baseline";
#endif
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "unknown";
}

bool supported(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return true;
#if defined(HORO_KERNELS_X86)
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && has_f16c();
    case Isa::avx512:
      return supported(Isa::avx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
#else
    case Isa::avx2:
    case Isa::avx512:
      return false;
#endif
  }
  return false;
}

Isa best_isa() {
  static const Isa best = [] {
    for (const Isa isa : {Isa::avx512, Isa::avx2}) {
      if (supported(isa)) return isa;
    }
    return Isa::baseline;
  }();
  return best;
}

ReduceToManyFn reduce_to_many_kernel(DType dtype, ReduceOp op, Isa isa) {
  const KernelTable* const table = table_of(isa);
  if (table == nullptr) return nullptr;
  return table->many[static_cast<int>(dtype)][static_cast<int>(op)];
}

ReduceToManyFn reduce_to_many_kernel(DType dtype, ReduceOp op) {
  return reduce_to_many_kernel(dtype, op, best_isa());
}

ReduceFn reduce_kernel(DType dtype, ReduceOp op, Isa isa) {
  const KernelTable* const table = table_of(isa);
  if (table == nullptr) return nullptr;
  return table->one[static_cast<int>(dtype)][static_cast<int>(op)];
}

ReduceFn reduce_kernel(DType dtype, ReduceOp op) {
  return reduce_kernel(dtype, op, best_isa());
}

DotsFn dots_kernel(DType dtype, Isa isa) {
  const KernelTable* const table = table_of(isa);
  return table == nullptr ? nullptr : table->dots[static_cast<int>(dtype)];
}

DotsFn dots_kernel(DType dtype) {
  return dots_kernel(dtype, best_isa());
}

WeightedSumFn weighted_sum_kernel(DType dtype, Isa isa) {
  const KernelTable* const table = table_of(isa);
  return table == nullptr ? nullptr : table->weighted_sum[static_cast<int>(dtype)];
}

WeightedSumFn weighted_sum_kernel(DType dtype) {
  return weighted_sum_kernel(dtype, best_isa());
}

EncodeFn encode_kernel(DType dtype, Isa isa) {
  const KernelTable* const table = table_of(isa);
  return table == nullptr ? nullptr : table->encode[static_cast<int>(dtype)];
}

EncodeFn encode_kernel(DType dtype) {
  return encode_kernel(dtype, best_isa());
}

DecodeFn decode_kernel(DType dtype, Isa isa) {
  const KernelTable* const table = table_of(isa);
  return table == nullptr ? nullptr : table->decode[static_cast<int>(dtype)];
}

DecodeFn decode_kernel(DType dtype) {
  return decode_kernel(dtype, best_isa());
}

CopyFn copy_kernel() {
  return copy_bytes;
}

CopyFn stream_copy_kernel(Isa isa) {
  const KernelTable* const table = table_of(isa);
  return table == nullptr ? nullptr : table->stream_copy;
}

CopyFn stream_copy_kernel() {
  return stream_copy_kernel(best_isa());
}

}  // namespace horo::kernels
