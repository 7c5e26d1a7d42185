// SPDX-License-Identifier: Apache-2.0
// Sets of tensor numbers in a frame: as ranges or as bits, whichever is shorter. A steady step is
// one range or a few.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/coordinator/tree/bytes.hpp"

namespace horo::runtime::tree {

/// `ids` is ascending, each once.
void put_ids(Writer& writer, const std::vector<std::uint32_t>& ids);

/// Refuses what put_ids would have written otherwise.
std::vector<std::uint32_t> take_ids(Reader& reader);

}  // namespace horo::runtime::tree
