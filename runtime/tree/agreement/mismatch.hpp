// SPDX-License-Identifier: Apache-2.0
// Checks that ranks declare the same tensor, and writes the error if they do not. Pure.
#pragma once

#include <string_view>

#include "runtime/tensor/mismatch_report.hpp"
#include "runtime/tree/frames/frames.hpp"

namespace horo::runtime::tree {

/// Whether all signatures can run together. There is at least one, and none is missing.
bool compatible(const Variants& variants);

/// "tensor 'x': ranks disagree about the dtype: float32 on ranks 0-3, float64 on rank 4", for
/// variants that are not compatible.
MismatchReport describe_mismatch(std::string_view name, const Variants& variants);

}  // namespace horo::runtime::tree
