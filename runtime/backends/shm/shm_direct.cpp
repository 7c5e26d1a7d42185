// SPDX-License-Identifier: Apache-2.0
// Buckets that are read from the peers' arenas without a copy in between.
#include <algorithm>

#include "runtime/backends/shm/shm_mover.hpp"

namespace horo::runtime {

void ShmMover::reduce_direct(ShmBucket& a, const ShmChunk& mine) {
  const auto element = size_of(a.what.dtype);
  const auto n = static_cast<std::size_t>(ranks_);
  if (mine.count == 0) return;
  const bool keeps = a.collects();
  const auto kernel = kernels::reduce_to_many_kernel(a.what.dtype, a.what.op);
  a.lanes.for_pieces(mine.lane, mine.first, mine.count, [&](const LanePiece& piece) {
    for (std::size_t r = 0; r < n; ++r) {
      sources_[r] = a.peer_in[piece.part * n + r] + piece.in * element;
      if (!keeps) targets_[r] = a.peer_out[piece.part * n + r] + piece.out * element;
    }
    if (keeps)
      targets_[0] = static_cast<std::byte*>(a.bucket.parts[piece.part].out) + piece.out * element;
    kernel(a.what, targets_.data(), keeps ? 1 : ranks_, sources_.data(), ranks_, piece.count);
  });
}

void ShmMover::copy_direct(ShmBucket& a, std::uint64_t chunk) {
  const auto element = size_of(a.what.dtype);
  const auto n = static_cast<std::size_t>(ranks_);
  const bool published = a.publishes();
  for (int source = 0; source < ranks_; ++source) {
    const auto theirs = published ? a.result_of(chunk, source) : a.part_from(chunk, source);
    if (theirs.count == 0) continue;
    a.lanes.for_pieces(theirs.lane, theirs.first, theirs.count, [&](const LanePiece& piece) {
      const auto& part = a.bucket.parts[piece.part];
      const auto* from = source == me_
                             ? static_cast<const std::byte*>(part.in)
                             : a.peer_in[piece.part * n + static_cast<std::size_t>(source)];
      from += piece.in * element;
      auto* to = static_cast<std::byte*>(part.out) + piece.out * element;
      if (to != from) a.to_result(to, from, piece.count * element);
    });
  }
}

}  // namespace horo::runtime
