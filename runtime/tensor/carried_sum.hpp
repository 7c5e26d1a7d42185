// SPDX-License-Identifier: Apache-2.0
// Sums between hosts whose inputs travel with the agreement: they are so small that a message with
// them takes hardly longer than one without. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/tensor/signature.hpp"

namespace horo::runtime {

/// Inputs of all members for one tensor, because every host gets them.
inline constexpr std::uint64_t kMostCarriedBytes = 2048;

/// Inputs of all tensors of one entry.
inline constexpr std::uint64_t kMostCarriedInEntry = 16384;

/// Tensors that a host has ready at once. With more of them the sum is not what they wait for.
inline constexpr std::size_t kMostCarriedAtOnce = 8;

/// Whether the inputs of `members` ranks travel with the agreement. Each rank then reduces all of
/// them by itself, in rank order.
constexpr bool is_carried(const Signature& signature, int members) {
  return signature.kind == Kind::allreduce && signature.memory == MemoryKind::host &&
         signature.op != ReduceOp::adasum && signature.wire == WireDType::none &&
         signature.elements != 0 &&
         signature.bytes() <= kMostCarriedBytes / static_cast<std::uint64_t>(members);
}

}  // namespace horo::runtime
