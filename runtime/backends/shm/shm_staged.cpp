// SPDX-License-Identifier: Apache-2.0
// Buckets that move through the rings, step by step.
#include <algorithm>

#include "runtime/backends/shm/shm_mover.hpp"

namespace horo::runtime {

namespace {

constexpr std::uint64_t kReducedBlock = 128 << 10;  // Bytes; stays in a core's own cache.

}  // namespace

ShmMover::ShmMover(const Rings& rings)
    : rings_(rings),
      me_(rings.me()),
      ranks_(rings.local_size()),
      sources_(static_cast<std::size_t>(ranks_)),
      targets_(static_cast<std::size_t>(ranks_)) {}

void ShmMover::copy_in(ShmBucket& a, std::uint64_t step) {
  const auto measured = copies_.in();
  const auto element = size_of(a.what.dtype);
  for (int owner = 0; owner < ranks_; ++owner) {
    const auto chunk = a.part_for(step, owner);
    if (owner == me_ || chunk.count == 0) continue;
    std::byte* slot = rings_.input(me_, a.first_step + step, owner);
    a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const LanePiece& piece) {
      const auto* from =
          static_cast<const std::byte*>(a.bucket.parts[piece.part].in) + piece.in * element;
      ring_writer_.copy(slot + piece.in_chunk * element, from, piece.count * element);
    });
  }
}

void ShmMover::reduce(ShmBucket& a, std::uint64_t step) {
  const auto element = size_of(a.what.dtype);
  const auto chunk = a.part_for(step, me_);
  if (chunk.count == 0) return;
  const auto kernel = kernels::reduce_to_many_kernel(a.what.dtype, a.what.op);
  const int places = a.collects() ? 1 : 2;
  std::byte* result = rings_.result(me_, a.first_step + step);
  a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const LanePiece& piece) {
    const auto& part = a.bucket.parts[piece.part];
    const auto offset = piece.in_chunk * element;
    for (int r = 0; r < ranks_; ++r) {
      sources_[static_cast<std::size_t>(r)] =
          r == me_ ? static_cast<const std::byte*>(part.in) + piece.in * element
                   : rings_.input(r, a.first_step + step, me_) + offset;
    }
    auto* const own = static_cast<std::byte*>(part.out) + piece.out * element;
    const auto to_ring = ring_writer_.preferred();
    if (places == 1 || to_ring == kernels::copy_kernel()) {
      void* const targets[] = {own, result + offset};
      kernel(a.what, targets, places, sources_.data(), ranks_, piece.count);
      return;
    }
    // Bypass the caches, block by block, while the result is still in this core's own cache.
    const auto block = kReducedBlock / element;
    for (std::uint64_t done = 0; done < piece.count; done += block) {
      const auto count = std::min(block, piece.count - done);
      void* const target = own + done * element;
      kernel(a.what, &target, 1, sources_.data(), ranks_, count);
      to_ring(result + offset + done * element, target, count * element);
      for (auto& source : sources_)
        source = static_cast<const std::byte*>(source) + count * element;
    }
  });
}

void ShmMover::collect(ShmBucket& a, std::uint64_t step) {
  const auto measured = copies_.out();
  const auto element = size_of(a.what.dtype);
  for (int source = 0; source < ranks_; ++source) {
    const auto chunk = a.part_from(step, source);
    if (chunk.count == 0) continue;
    const std::byte* slot = rings_.input(source, a.first_step + step, me_);
    a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const LanePiece& piece) {
      const auto& part = a.bucket.parts[piece.part];
      const auto* from = source == me_ ? static_cast<const std::byte*>(part.in) + piece.in * element
                                       : slot + piece.in_chunk * element;
      a.to_result(static_cast<std::byte*>(part.out) + piece.out * element, from,
                  piece.count * element);
    });
  }
}

void ShmMover::publish(ShmBucket& a, std::uint64_t step) {
  const auto measured = copies_.in();
  const auto element = size_of(a.what.dtype);
  const auto chunk = a.result_of(step, me_);
  if (chunk.count == 0) return;
  std::byte* slot = rings_.result(me_, a.first_step + step);
  a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const LanePiece& piece) {
    const auto& part = a.bucket.parts[piece.part];
    const auto* from = static_cast<const std::byte*>(part.in) + piece.in * element;
    ring_writer_.copy(slot + piece.in_chunk * element, from, piece.count * element);
    auto* to = static_cast<std::byte*>(part.out) + piece.out * element;
    if (to != from) a.to_result(to, from, piece.count * element);
  });
}

void ShmMover::copy_out(ShmBucket& a, std::uint64_t step) {
  const auto measured = copies_.out();
  const auto element = size_of(a.what.dtype);
  for (int source = 0; source < ranks_; ++source) {
    const auto chunk = a.result_of(step, source);
    if (source == me_ || chunk.count == 0) continue;
    const std::byte* slot = rings_.result(source, a.first_step + step);
    a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const LanePiece& piece) {
      auto* to = static_cast<std::byte*>(a.bucket.parts[piece.part].out) + piece.out * element;
      a.to_result(to, slot + piece.in_chunk * element, piece.count * element);
    });
  }
}

}  // namespace horo::runtime
