// SPDX-License-Identifier: Apache-2.0
// Straight from the peers' arenas, without a copy in between.
#include <algorithm>

#include "runtime/backends/shm/shm_backend.hpp"

namespace horo::runtime {

bool ShmBackend::step_direct() {
  for (auto& a : active_) {
    if (in_steps(a)) continue;
    if (a.out == 1) continue;  // Through with its own share.
    if (shared_out(a)) {
      if (const auto chunk = take_chunk(a)) {
        reduce_direct(a, *chunk);
        ++a.in;
      } else {
        a.out = 1;
        report_reduced(a);
      }
      return true;
    }
    if (a.in < a.steps) {
      if (reduces(a.bucket.like.kind)) {
        reduce_direct(a, part_for(a, a.in, me_));
      } else {
        copy_direct(a, a.in);
      }
      ++a.in;
    }
    if (a.in == a.steps) {
      a.out = 1;
      announce(Count::direct_done, a.first_step + 1);
    }
    return true;
  }
  return false;
}

std::optional<ShmBackend::Chunk> ShmBackend::take_chunk(Active& a) {
  const auto place = a.first_step % kSharedPlaces;
  const auto most = static_cast<std::uint32_t>(a.steps);
  for (; a.helped < ranks_; ++a.helped) {
    const int owner = (me_ + a.helped) % ranks_;
    const auto next = board_.area(owner).taken[place].take(round_of(a), most);
    if (next != most)
      return chunk_of_lane(a, 0, static_cast<std::uint64_t>(owner) * a.steps + next);
  }
  return std::nullopt;
}

void ShmBackend::report_reduced(Active& a) {
  auto& done = board_.body().reduced_in_place[a.first_step % kSharedPlaces];
  const auto sum = done.add(round_of(a), static_cast<std::uint32_t>(a.in));
  if (a.in != 0 && sum == a.steps * static_cast<std::uint64_t>(ranks_))
    wakes_ += static_cast<std::uint64_t>(board_.wake(interest::kChunks));
}

void ShmBackend::reduce_direct(Active& a, const Chunk& mine) {
  const auto element = size_of(a.what.dtype);
  const auto n = static_cast<std::size_t>(ranks_);
  if (mine.count == 0) return;
  const bool keeps = collects(a);
  const auto kernel = kernels::reduce_to_many_kernel(a.what.dtype, a.what.op);
  a.lanes.for_pieces(mine.lane, mine.first, mine.count, [&](const Piece& piece) {
    for (std::size_t r = 0; r < n; ++r) {
      sources_[r] = a.peer_in[piece.part * n + r] + piece.in * element;
      if (!keeps) targets_[r] = a.peer_out[piece.part * n + r] + piece.out * element;
    }
    if (keeps)
      targets_[0] = static_cast<std::byte*>(a.bucket.parts[piece.part].out) + piece.out * element;
    kernel(a.what, targets_.data(), keeps ? 1 : ranks_, sources_.data(), ranks_, piece.count);
  });
}

void ShmBackend::copy_direct(Active& a, std::uint64_t chunk) {
  const auto element = size_of(a.what.dtype);
  const auto n = static_cast<std::size_t>(ranks_);
  const bool published = publishes(a);
  for (int source = 0; source < ranks_; ++source) {
    const auto theirs = published ? result_of(a, chunk, source) : part_from(a, chunk, source);
    if (theirs.count == 0) continue;
    a.lanes.for_pieces(theirs.lane, theirs.first, theirs.count, [&](const Piece& piece) {
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
