// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/kv/server/key_value_store.hpp"
#include "base/result.hpp"

namespace horo::kv {

/// The largest payload of a request to a store with these limits. Fails: invalid_argument.
Result<std::uint32_t> max_payload(const StoreLimits& limits);

/// `wanted` connections without proof, or fewer: they may use at most an eighth of the descriptors,
/// because the launcher needs them too.
std::size_t bounded_by_descriptors(std::size_t wanted);

}  // namespace horo::kv
