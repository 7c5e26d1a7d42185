// SPDX-License-Identifier: Apache-2.0
// Which ready tensors share one log entry. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/strong.hpp"

namespace horo::runtime {

/// One ready tensor, as far as fusing is concerned.
struct Candidate {
  TensorId id;
  std::uint64_t bytes = 0;     ///< Of one rank's part.
  std::uint64_t fuse_key = 0;  ///< Tensors fuse when their keys are equal; 0 never fuses.
};

struct FusionLimits {
  std::uint64_t threshold_bytes = 0;  ///< 0: every tensor alone.
  std::size_t most_tensors = 0;       ///< Of one entry.
};

/// Positions in `ready`, ascending, of the next entry: the first tensor and every later one that
/// may join it while the entry stays within the threshold. A tensor that may not join is skipped as
/// long as taken and skipped bytes fit the threshold, so that an odd one does not end the bucket.
/// `taken` is cleared first; it is never empty afterwards unless `ready` is.
void plan_fusion(std::span<const Candidate> ready, const FusionLimits& limits,
                 std::vector<std::uint32_t>& taken);

}  // namespace horo::runtime
