// SPDX-License-Identifier: Apache-2.0
// Reductions one element at a time, written from the rules in docs/design/reductions.md and sharing
// nothing with the kernels; and the operands to try them on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "runtime/kernels/kernels.hpp"

namespace horo::tests {

using Bytes = std::vector<std::uint8_t>;

std::uint16_t half_of(float value);
float from_half(std::uint16_t half);
std::uint16_t bfloat_of(float value);
float from_bfloat(std::uint16_t bfloat);

/// Combines `count` elements of each input and returns the result's bytes.
Bytes reference(const kernels::Reduction& what, const std::vector<Bytes>& inputs,
                std::size_t count);

/// Elements of `dtype`: half of them any bits (infinities, NaN, subnormals, extremes), half
/// ordinary.
Bytes random_elements(kernels::DType dtype, std::size_t count, std::mt19937_64& random);

inline constexpr kernels::DType kReduced[] = {
    kernels::DType::u8,  kernels::DType::i8,  kernels::DType::u16, kernels::DType::i16,
    kernels::DType::i32, kernels::DType::i64, kernels::DType::f16, kernels::DType::f32,
    kernels::DType::f64, kernels::DType::bf16};

inline constexpr kernels::ReduceOp kOps[] = {kernels::ReduceOp::average, kernels::ReduceOp::sum,
                                             kernels::ReduceOp::min, kernels::ReduceOp::max,
                                             kernels::ReduceOp::product};

/// Every instruction set that this machine can run.
std::vector<kernels::Isa> isas();

}  // namespace horo::tests
