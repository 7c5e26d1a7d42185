// SPDX-License-Identifier: Apache-2.0
// Which ready tensors share one log entry. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/strong.hpp"

namespace horo::runtime {

/// The facts about one ready tensor that the plan needs.
struct Candidate {
  TensorId id;
  std::uint64_t bytes = 0;     ///< One rank's part.
  std::uint64_t fuse_key = 0;  ///< Tensors fuse when their keys are equal; 0 never fuses.
};

struct FusionLimits {
  std::uint64_t threshold_bytes = 0;  ///< Largest size of an entry; 0: every tensor alone.
  std::size_t most_tensors = 0;       ///< In an entry.
};

/// Sets `taken` to the positions in `ready`, ascending, of the next entry's tensors: the first one,
/// and every later one that fuses with it while the entry stays within the threshold. A tensor that
/// does not fuse is skipped as long as taken and skipped bytes are within the threshold, so that a
/// single different tensor does not end the entry. `taken` is empty only if `ready` is.
void plan_fusion(std::span<const Candidate> ready, const FusionLimits& limits,
                 std::vector<std::uint32_t>& taken);

}  // namespace horo::runtime
