// SPDX-License-Identifier: Apache-2.0
// The arithmetic of reductions in memory: many inputs in, one result out, to one or more places.
//
// Each element is combined strictly in the order of the inputs, alone in its lane, so its bits
// depend neither on how a buffer is cut nor on alignment nor on the instruction set. The rules for
// rounding, NaN, zeros, integers and scaling are in docs/design/reductions.md.
//
// Pointers need no alignment (64 bytes are fastest). A destination may be one of the inputs, at the
// same element; any other overlap is not allowed. Thread: any. Blocks: no. Fails: never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/tensor/dtype.hpp"

namespace horo::kernels {

using runtime::DType;
using runtime::ReduceOp;

/// A reduction computes post(pre(src[0][i]) op pre(src[1][i]) op ... op pre(src[n - 1][i])).
struct Reduction {
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  double prescale = 1;   ///< Each input is multiplied by it; exactly 1: not at all.
  double postscale = 1;  ///< The result is multiplied by it; exactly 1: not at all.
  int ranks = 1;         ///< Divisor of `average`; at least the number of inputs.
};

/// `n` inputs (1 or more) of `count` elements to one destination.
using ReduceFn = void (*)(const Reduction& what, void* dst, const void* const* src, int n,
                          std::size_t count);

/// The same to `ndst` destinations (1 or more), written while the result is still in registers.
using ReduceToManyFn = void (*)(const Reduction& what, void* const* dst, int ndst,
                                const void* const* src, int n, std::size_t count);

/// The vector sum of `n` inputs (1 or more), each times its weight, in float64.
struct Weighted {
  const void* const* src = nullptr;
  const double* weights = nullptr;
  int n = 0;
};

/// Running scalar products a*b, a*a and b*b. Element i of a call counts in lane i modulo 16, and
/// each lane adds up in order, so the bits do not depend on the cuts if all pieces but the last
/// have a multiple of 16 elements.
struct DotsState {
  double lanes[3][16] = {};
};

/// Adds `count` elements of the vectors a and b to their products. Floating-point types only.
using DotsFn = void (*)(DotsState& state, const Weighted& a, const Weighted& b, std::size_t count);

/// The weighted sum to `ndst` destinations, rounded to the type (16 bits: through float32).
using WeightedSumFn = void (*)(void* const* dst, int ndst, const Weighted& group,
                               std::size_t count);

/// How float32 elements become 16-bit ones: round((before * element + remainder) * scale), to the
/// nearest, ties to even. What is too large becomes infinite, and every NaN the one quiet NaN.
struct Encoding {
  DType dtype = DType::bf16;  ///< f16 or bf16.
  float before = 1;
  float scale = 1;  ///< A power of two.
};

/// Encodes `count` elements. If `remainder` is not null, it is added and then holds what the
/// rounding has left, before `scale`; nothing where the result is not finite. Here no buffers
/// overlap. `how.dtype` must be the one of encode_kernel().
using EncodeFn = void (*)(const Encoding& how, void* dst, const float* src, float* remainder,
                          std::size_t count);

/// Decodes `count` elements, which is exact. No buffers overlap.
using DecodeFn = void (*)(float* dst, const void* src, std::size_t count);

/// Copies `bytes` between buffers that do not overlap.
using CopyFn = void (*)(void* dst, const void* src, std::size_t bytes);

/// Instruction sets with kernels of their own, from the least to the widest. On aarch64 the
/// baseline is NEON, which every such processor has, and there is no other.
enum class Isa : std::uint8_t { baseline = 0, avx2 = 1, avx512 = 2 };

inline constexpr int kIsas = 3;

std::string_view name(Isa isa);

/// Whether this CPU and operating system run it (avx2 asks for F16C too).
bool supported(Isa isa);

/// The widest supported one; decided once per process.
Isa best_isa();

/// Kernels for this CPU. Null where there is no such reduction (adasum; booleans but for min and
/// max): the caller rejects those.
/// `what.dtype` and `what.op` in the calls must be those given here.
ReduceFn reduce_kernel(DType dtype, ReduceOp op);
ReduceToManyFn reduce_to_many_kernel(DType dtype, ReduceOp op);

/// Kernels of one instruction set, for tests and benchmarks; null where it is not supported too.
ReduceFn reduce_kernel(DType dtype, ReduceOp op, Isa isa);
ReduceToManyFn reduce_to_many_kernel(DType dtype, ReduceOp op, Isa isa);

/// For Adasum; null for types that are not floating point, and where not supported.
DotsFn dots_kernel(DType dtype);
DotsFn dots_kernel(DType dtype, Isa isa);
WeightedSumFn weighted_sum_kernel(DType dtype);
WeightedSumFn weighted_sum_kernel(DType dtype, Isa isa);

/// Between float32 and f16 or bf16; null for other types, and where not supported.
EncodeFn encode_kernel(DType dtype);
EncodeFn encode_kernel(DType dtype, Isa isa);
DecodeFn decode_kernel(DType dtype);
DecodeFn decode_kernel(DType dtype, Isa isa);

/// For destinations that somebody reads soon: what is copied is left in this core's cache.
CopyFn copy_kernel();

/// For destinations in memory that is not cached and whose content need not be: written around the
/// cache, 1.6 times as fast as copy_kernel() there, and 2 to 3 times slower where it is cached, as
/// the destination of an operation in place mostly is. Readers see the bytes before any later
/// store.
CopyFn stream_copy_kernel();
CopyFn stream_copy_kernel(Isa isa);  ///< For tests; null where not supported.

}  // namespace horo::kernels
