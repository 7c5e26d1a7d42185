// SPDX-License-Identifier: Apache-2.0
// Sets of tensor numbers in a frame: as ranges or as bits, whichever is shorter. A steady step is
// one range or a few.
#pragma once

#include <cstdint>
#include <vector>

#include "base/codec/bytes.hpp"

namespace horo::runtime::tree {

/// `ids` is ascending, each once.
void put_ids(ByteWriter& writer, const std::vector<std::uint32_t>& ids);

/// Refuses every spelling but the one that put_ids writes.
std::vector<std::uint32_t> take_ids(ByteReader& reader);

}  // namespace horo::runtime::tree
