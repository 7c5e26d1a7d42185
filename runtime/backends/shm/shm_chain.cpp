// SPDX-License-Identifier: Apache-2.0
// Buckets that pass from rank to rank: see shm_backend.hpp.
#include <array>

#include "runtime/backends/shm/shm_mover.hpp"

namespace horo::runtime {

void ShmMover::chain_in(ShmBucket& a, std::uint64_t piece) {
  const auto element = size_of(a.what.dtype);
  const auto chunk = a.chunk_of_lane(0, piece);
  const bool last = me_ + 1 == ranks_;
  // Only the last rank scales and divides.
  auto what = a.what;
  if (!last) {
    what.postscale = 1;
    if (what.op == ReduceOp::average) what.op = ReduceOp::sum;
  }
  const auto kernel = kernels::reduce_to_many_kernel(what.dtype, what.op);
  auto* const slot = rings_.chain_slot(a.first_step + piece);
  a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const LanePiece& run) {
    const auto& part = a.bucket.parts[run.part];
    auto* const sum = slot + run.in_chunk * element;
    const auto* const own = static_cast<const std::byte*>(part.in) + run.in * element;
    if (me_ == 0) {
      kernels::copy_kernel()(sum, own, run.count * element);
      return;
    }
    const std::array<const void*, 2> sources{sum, own};
    const std::array<void*, 2> targets{sum, static_cast<std::byte*>(part.out) + run.out * element};
    kernel(what, targets.data(), last ? 2 : 1, sources.data(), 2, run.count);
  });
}

void ShmMover::chain_out(ShmBucket& a, std::uint64_t piece) {
  if (me_ + 1 == ranks_) return;  // It has written its own output.
  const auto measured = copies_.out();
  const auto element = size_of(a.what.dtype);
  const auto chunk = a.chunk_of_lane(0, piece);
  const auto* const slot = rings_.chain_slot(a.first_step + piece);
  a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const LanePiece& run) {
    auto* const to = static_cast<std::byte*>(a.bucket.parts[run.part].out) + run.out * element;
    a.to_result(to, slot + run.in_chunk * element, run.count * element);
  });
}

}  // namespace horo::runtime
