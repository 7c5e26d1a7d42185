// SPDX-License-Identifier: Apache-2.0
// The table of one instruction set; the includer has defined HORO_KERNEL_WIDTH.
// See vector.hpp for why all is internal.
#pragma once

#include "runtime/kernels/adasum_kernels.hpp"
#include "runtime/kernels/integer_kernels.hpp"
#include "runtime/kernels/kernel_table.hpp"
#include "runtime/kernels/stream_copy.hpp"
#include "runtime/kernels/vector_kernels.hpp"
#include "runtime/kernels/wire_kernels.hpp"

namespace horo::kernels {
namespace {

template <ReduceToManyFn kMany>
void to_one(const Reduction& what, void* dst, const void* const* src, int n, std::size_t count) {
  kMany(what, &dst, 1, src, n, count);
}

template <ReduceToManyFn kMany>
constexpr void put(KernelTable& table, DType dtype, ReduceOp op) {
  table.many[static_cast<int>(dtype)][static_cast<int>(op)] = kMany;
  table.one[static_cast<int>(dtype)][static_cast<int>(op)] = to_one<kMany>;
}

template <typename T>
constexpr void put_floating(KernelTable& table, DType dtype) {
  put<reduce_vectors<T, Sum>>(table, dtype, ReduceOp::average);
  put<reduce_vectors<T, Sum>>(table, dtype, ReduceOp::sum);
  put<reduce_vectors<T, Min>>(table, dtype, ReduceOp::min);
  put<reduce_vectors<T, Max>>(table, dtype, ReduceOp::max);
  put<reduce_vectors<T, Product>>(table, dtype, ReduceOp::product);
  table.dots[static_cast<int>(dtype)] = dots<T>;
  table.weighted_sum[static_cast<int>(dtype)] = weighted_sum<T>;
}

template <typename T>
constexpr void put_wire(KernelTable& table, DType dtype) {
  table.encode[static_cast<int>(dtype)] = encode<T>;
  table.decode[static_cast<int>(dtype)] = decode<T>;
}

/// `U` is the unsigned type as wide as `E`: sum and product wrap in it, which signed ones may not.
template <typename E, typename U>
constexpr void put_integer(KernelTable& table, DType dtype) {
  put<average_integers<E>>(table, dtype, ReduceOp::average);
  put<reduce_integers<E, U, Sum>>(table, dtype, ReduceOp::sum);
  put<reduce_integers<E, E, Min>>(table, dtype, ReduceOp::min);
  put<reduce_integers<E, E, Max>>(table, dtype, ReduceOp::max);
  put<reduce_integers<E, U, Product>>(table, dtype, ReduceOp::product);
}

constexpr KernelTable make_table() {
  KernelTable table{};
  table.stream_copy = stream_copy;
  put_integer<std::uint8_t, std::uint8_t>(table, DType::u8);
  put_integer<std::int8_t, std::uint8_t>(table, DType::i8);
  put_integer<std::uint16_t, std::uint16_t>(table, DType::u16);
  put_integer<std::int16_t, std::uint16_t>(table, DType::i16);
  put_integer<std::int32_t, std::uint32_t>(table, DType::i32);
  put_integer<std::int64_t, std::uint64_t>(table, DType::i64);
  put<reduce_vectors<Truth, Min>>(table, DType::boolean, ReduceOp::min);
  put<reduce_vectors<Truth, Max>>(table, DType::boolean, ReduceOp::max);
  put_floating<Half>(table, DType::f16);
  put_floating<Plain<float>>(table, DType::f32);
  put_floating<Plain<double>>(table, DType::f64);
  put_floating<Bfloat>(table, DType::bf16);
  put_wire<Half>(table, DType::f16);
  put_wire<Bfloat>(table, DType::bf16);
  return table;
}

}  // namespace
}  // namespace horo::kernels
