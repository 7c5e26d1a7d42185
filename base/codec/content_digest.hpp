// SPDX-License-Identifier: Apache-2.0
// A digest of large data, by which processes of one job compare it without sending it. It reads as
// fast as memory allows, and guards against accidents only: two contents with one digest can be
// made on purpose.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace horo {

using ContentDigest = std::array<std::uint64_t, 2>;

/// Different contents have different digests, except for about one pair in 2^64. The bytes are
/// taken as little-endian words, so hosts of one byte order agree. Pure. Thread: any.
ContentDigest digest_of(std::span<const std::byte> content);

}  // namespace horo
