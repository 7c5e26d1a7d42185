// SPDX-License-Identifier: Apache-2.0
// Neutral elements: with them a joined rank takes part without changing any result.
#pragma once

#include <cstdint>

#include "runtime/tensor/dtype.hpp"

namespace horo::runtime {

/// Fills `memory` with the neutral element of `op`: 0 for sum, average and adasum, 1 for product,
/// the largest value (infinity) for min, the smallest for max.
void fill_neutral(DType dtype, ReduceOp op, void* memory, std::uint64_t elements);

}  // namespace horo::runtime
