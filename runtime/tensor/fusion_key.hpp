// SPDX-License-Identifier: Apache-2.0
// Which tensors may run as one operation. Pure.
#pragma once

#include <cstdint>

#include "runtime/tensor/signature.hpp"

namespace horo::runtime {

/// Tensors fuse when their keys are equal; 0 never fuses.
std::uint64_t fusion_key(const Signature& signature);

}  // namespace horo::runtime
