// SPDX-License-Identifier: Apache-2.0
// Whether ranks mean the same tensor, and what to tell people when they do not. Pure.
#pragma once

#include <string>
#include <string_view>

#include "runtime/coordinator/tree/wire.hpp"

namespace horo::runtime::tree {

/// All signatures, of which there is at least one and none is missing, can run together.
bool compatible(const Variants& variants);

/// "tensor 'x': ranks disagree about the dtype: float32 on ranks 0-3, float64 on rank 4", for
/// variants that are not compatible.
std::string mismatch_text(std::string_view name, const Variants& variants);

}  // namespace horo::runtime::tree
