// SPDX-License-Identifier: Apache-2.0
// Which elements of a bucket's tensors move between which ranks. Pure arithmetic, 64 bits wide.
//
// A lane is a sequence of elements that move together, the tensors' stretches end to end:
//
//   allreduce, broadcast   one lane: all elements
//   allgather              lane r: elements that rank r contributes
//   reducescatter          lane r: elements that rank r receives
//   alltoall               lane r: elements that this rank sends to r; lane ranks + r: those it
//                          gets from r
//   adasum                 lane r: the slices that rank r computes, in whole units
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// Elements of `rank`'s input of part `part`, up to the last one that this rank or, but for an
/// alltoall, any rank reads.
std::uint64_t elements_from(const Bucket& bucket, std::size_t part, int rank, int ranks);

/// A run of elements of one tensor inside a chunk of a lane; all counts are elements.
struct LanePiece {
  std::size_t part = 0;
  std::uint64_t in = 0;        ///< From the start of the sender's input.
  std::uint64_t out = 0;       ///< From the start of the receiver's output.
  std::uint64_t in_chunk = 0;  ///< From the start of the chunk.
  std::uint64_t count = 0;
};

class Lanes {
 public:
  Lanes() = default;
  /// The bucket's row counts have been checked for its kind.
  Lanes(const Bucket& bucket, int ranks);

  /// Elements of a lane.
  std::uint64_t total(std::size_t lane) const { return before_[lane * (parts_ + 1) + parts_]; }

  /// Elements of the longest lane between any two ranks: the same number on all ranks.
  std::uint64_t longest() const { return longest_; }

  /// Calls `use(LanePiece)` for each run of elements in [first, first + count) of a lane, in order.
  template <typename Use>
  void for_pieces(std::size_t lane, std::uint64_t first, std::uint64_t count, Use use) const {
    const auto* before = before_.data() + lane * (parts_ + 1);
    const auto* stretches = stretches_.data() + lane * parts_;
    auto part =
        static_cast<std::size_t>(std::upper_bound(before, before + parts_, first) - before - 1);
    for (std::uint64_t done = 0; done < count; ++part) {
      const auto at = first + done - before[part];
      const auto piece = std::min(count - done, before[part + 1] - before[part] - at);
      if (piece != 0) {
        use(LanePiece{.part = part,
                      .in = stretches[part].in + at,
                      .out = stretches[part].out + at,
                      .in_chunk = done,
                      .count = std::min(piece, stretches[part].count - at)});
      }
      done += piece;
    }
  }

 private:
  /// Where a lane's elements of one tensor begin.
  struct Stretch {
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    std::uint64_t count = 0;
  };

  void begin_lane();
  /// `room`: elements up to the next stretch, which begins at a whole unit.
  void add(const Stretch& stretch, std::uint64_t room);
  void add_slices(const Bucket& bucket, int ranks);
  void add_alltoall(const Bucket& bucket, std::size_t ranks);

  std::size_t parts_ = 0;
  std::uint64_t longest_ = 0;
  std::vector<std::uint64_t> before_;  ///< Lane by lane: elements before each part, and the total.
  std::vector<Stretch> stretches_;     ///< Lane by lane, part by part.
};

}  // namespace horo::runtime
