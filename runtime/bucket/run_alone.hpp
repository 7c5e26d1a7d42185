// SPDX-License-Identifier: Apache-2.0
// Results that one rank computes by itself, from memory that it can read.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// Reduces all ranks' inputs, which this process can read, to one result.
void combine_parts(const Signature& like, std::span<const void* const> inputs,
                   std::uint64_t elements, void* out);

/// The set has one member: from its inputs to its outputs.
void run_alone(const Bucket& bucket);

}  // namespace horo::runtime
