// SPDX-License-Identifier: Apache-2.0
// The pieces in which a bucket passes through host memory. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// Bytes of a piece of an all-reduce or a broadcast. Other kinds, and Adasum, are one piece. The
/// same on all ranks.
inline constexpr std::uint64_t kPieceBytes = std::uint64_t{2} << 20U;

/// Some elements of a tensor in a piece.
struct StagedRun {
  std::size_t part = 0;
  std::uint64_t first = 0;  ///< The number of the first element in the part.
  std::uint64_t count = 0;
  std::uint64_t in = 0;         ///< Where the input is, in bytes from the start of the memory.
  std::uint64_t in_bytes = 0;   ///< 0: this rank brings nothing.
  std::uint64_t out = 0;        ///< The same for the result.
  std::uint64_t out_bytes = 0;  ///< 0: this rank gets nothing.
};

struct StagedPiece {
  std::vector<StagedRun> runs;
  std::uint64_t bytes = 0;  ///< It needs so much memory.
};

/// All ranks get the same number of pieces, and elements of the same tensors in each.
std::vector<StagedPiece> plan_staging(const Bucket& bucket, int position, int ranks);

}  // namespace horo::runtime
