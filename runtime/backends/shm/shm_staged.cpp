// SPDX-License-Identifier: Apache-2.0
// Through the rings, step by step.
#include <algorithm>

#include "runtime/backends/shm/shm_backend.hpp"

namespace horo::runtime {

namespace {

constexpr std::uint64_t kReducedBlock = 128 << 10;  // Bytes; stays in a core's own cache.

}  // namespace

ShmBackend::Chunk ShmBackend::chunk_of_lane(const Active& a, std::size_t lane,
                                            std::uint64_t step) const {
  const auto first = step * a.chunk;
  const auto all = a.lanes.total(lane);
  return {.lane = lane, .first = first, .count = first < all ? std::min(a.chunk, all - first) : 0};
}

/// What passes the result ring of `rank` in a step.
ShmBackend::Chunk ShmBackend::result_of(const Active& a, std::uint64_t step, int rank) const {
  switch (a.bucket.like.kind) {
    case Kind::allreduce:
      return part_for(a, step, rank);
    case Kind::allgather:
      return chunk_of_lane(a, static_cast<std::size_t>(rank), step);
    case Kind::broadcast:
      return rank == a.bucket.like.root ? chunk_of_lane(a, 0, step) : Chunk{};
    case Kind::barrier:
    case Kind::join:
    case Kind::reducescatter:
    case Kind::alltoall:
      break;
  }
  return {};
}

/// What this rank puts into its ring for `owner` in a step.
ShmBackend::Chunk ShmBackend::part_for(const Active& a, std::uint64_t step, int owner) const {
  if (a.adasum) {
    const auto stage = a.adasum->stage_of(step);
    if (stage.exchange) return {};
    return chunk_of_lane(a, static_cast<std::size_t>(owner), stage.step);
  }
  if (a.bucket.like.kind == Kind::allreduce) {
    const auto n = static_cast<std::uint64_t>(ranks_);
    return chunk_of_lane(a, 0, step * n + static_cast<std::uint64_t>(owner));
  }
  return chunk_of_lane(a, static_cast<std::size_t>(owner), step);
}

/// What this rank finds in the ring of `source` in a step.
ShmBackend::Chunk ShmBackend::part_from(const Active& a, std::uint64_t step, int source) const {
  if (a.bucket.like.kind == Kind::alltoall)
    return chunk_of_lane(a, static_cast<std::size_t>(ranks_ + source), step);
  return part_for(a, step, me_);
}

std::byte* ShmBackend::ring_in(int rank, std::uint64_t step, int owner) const {
  const auto& l = board_.layout();
  const auto slot = step % board_.params().ring_slots * static_cast<std::uint64_t>(ranks_) +
                    static_cast<std::uint64_t>(owner);
  return board_.base() + l.rings + static_cast<std::uint64_t>(rank) * l.ring_bytes +
         slot * l.staged_chunk;
}

std::byte* ShmBackend::ring_out(int rank, std::uint64_t step) const {
  const auto& l = board_.layout();
  const std::uint64_t slots = board_.params().ring_slots;
  return board_.base() + l.rings + static_cast<std::uint64_t>(rank) * l.ring_bytes +
         (slots * static_cast<std::uint64_t>(ranks_) + step % slots) * l.staged_chunk;
}

bool ShmBackend::step_in() {
  for (auto& a : active_) {
    if (!in_steps(a) || a.in == a.steps) continue;
    const auto step = a.first_step + a.in;
    const std::uint64_t slots = board_.params().ring_slots;
    if (step >= slots && !peers_reached(Count::reduced, step - slots + 1)) return false;
    if (!publishes(a) && !direct(a)) copy_in(a, a.in);
    ++a.in;
    announce(Count::copied_in, step + 1);
    return true;
  }
  return false;
}

bool ShmBackend::step_reduce() {
  for (auto& a : active_) {
    if (!in_steps(a) || a.reduced == a.steps) continue;
    const auto step = a.first_step + a.reduced;
    const std::uint64_t slots = board_.params().ring_slots;
    if (a.reduced == a.in)
      return false;  // Own part first: the counters of a rank keep their order.
    const bool room = step < slots || peers_reached(Count::copied_out, step - slots + 1);
    const bool filled = publishes(a) || peers_reached(Count::copied_in, step + 1);
    if (!room || !filled) return false;
    // A pass of an Adasum needs the weights that the one before it has led to.
    if (a.adasum && a.out < a.adasum->stage_of(a.reduced).begin) return false;
    switch (a.bucket.like.kind) {
      case Kind::allreduce:
      case Kind::reducescatter:
        if (!a.adasum) {
          reduce(a, a.reduced);
        } else if (!adasum_step(a, a.reduced)) {
          return true;
        }
        break;
      case Kind::alltoall:
        collect(a, a.reduced);
        break;
      case Kind::allgather:
      case Kind::broadcast:
      case Kind::barrier:
      case Kind::join:
        publish(a, a.reduced);
        break;
    }
    ++a.reduced;
    announce(Count::reduced, step + 1);
    return true;
  }
  return false;
}

bool ShmBackend::step_out() {
  for (auto& a : active_) {
    if (!in_steps(a) || a.out == a.steps) continue;
    const auto step = a.first_step + a.out;
    if (a.out == a.reduced) return false;
    if (!collects(a)) {
      if (!peers_reached(Count::reduced, step + 1)) return false;
      a.adasum ? adasum_out(a, a.out) : copy_out(a, a.out);
    }
    ++a.out;
    announce(Count::copied_out, step + 1);
    return true;
  }
  return false;
}

void ShmBackend::copy_in(Active& a, std::uint64_t step) {
  const auto measured = copies_.in();
  const auto element = size_of(a.what.dtype);
  for (int owner = 0; owner < ranks_; ++owner) {
    const auto chunk = part_for(a, step, owner);
    if (owner == me_ || chunk.count == 0) continue;
    std::byte* slot = ring_in(me_, a.first_step + step, owner);
    a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const Piece& piece) {
      const auto* from =
          static_cast<const std::byte*>(a.bucket.parts[piece.part].in) + piece.in * element;
      ring_writer_.copy(slot + piece.in_chunk * element, from, piece.count * element);
    });
  }
}

void ShmBackend::reduce(Active& a, std::uint64_t step) {
  const auto element = size_of(a.what.dtype);
  const auto chunk = part_for(a, step, me_);
  if (chunk.count == 0) return;
  const auto kernel = kernels::reduce_to_many_kernel(a.what.dtype, a.what.op);
  const int places = collects(a) ? 1 : 2;
  std::byte* result = ring_out(me_, a.first_step + step);
  a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const Piece& piece) {
    const auto& part = a.bucket.parts[piece.part];
    const auto offset = piece.in_chunk * element;
    for (int r = 0; r < ranks_; ++r) {
      sources_[static_cast<std::size_t>(r)] =
          r == me_ ? static_cast<const std::byte*>(part.in) + piece.in * element
                   : ring_in(r, a.first_step + step, me_) + offset;
    }
    auto* const own = static_cast<std::byte*>(part.out) + piece.out * element;
    const auto to_ring = ring_writer_.preferred();
    if (places == 1 || to_ring == kernels::copy_kernel()) {
      void* const targets[] = {own, result + offset};
      kernel(a.what, targets, places, sources_.data(), ranks_, piece.count);
      return;
    }
    // Around the caches, from where the result is still in this core's own.
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

void ShmBackend::collect(Active& a, std::uint64_t step) {
  const auto measured = copies_.out();
  const auto element = size_of(a.what.dtype);
  for (int source = 0; source < ranks_; ++source) {
    const auto chunk = part_from(a, step, source);
    if (chunk.count == 0) continue;
    const std::byte* slot = ring_in(source, a.first_step + step, me_);
    a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const Piece& piece) {
      const auto& part = a.bucket.parts[piece.part];
      const auto* from = source == me_ ? static_cast<const std::byte*>(part.in) + piece.in * element
                                       : slot + piece.in_chunk * element;
      a.to_result(static_cast<std::byte*>(part.out) + piece.out * element, from,
                  piece.count * element);
    });
  }
}

void ShmBackend::publish(Active& a, std::uint64_t step) {
  const auto measured = copies_.in();
  const auto element = size_of(a.what.dtype);
  const auto chunk = result_of(a, step, me_);
  if (chunk.count == 0) return;
  std::byte* slot = ring_out(me_, a.first_step + step);
  a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const Piece& piece) {
    const auto& part = a.bucket.parts[piece.part];
    const auto* from = static_cast<const std::byte*>(part.in) + piece.in * element;
    ring_writer_.copy(slot + piece.in_chunk * element, from, piece.count * element);
    auto* to = static_cast<std::byte*>(part.out) + piece.out * element;
    if (to != from) a.to_result(to, from, piece.count * element);
  });
}

void ShmBackend::copy_out(Active& a, std::uint64_t step) {
  const auto measured = copies_.out();
  const auto element = size_of(a.what.dtype);
  for (int source = 0; source < ranks_; ++source) {
    const auto chunk = result_of(a, step, source);
    if (source == me_ || chunk.count == 0) continue;
    const std::byte* slot = ring_out(source, a.first_step + step);
    a.lanes.for_pieces(chunk.lane, chunk.first, chunk.count, [&](const Piece& piece) {
      auto* to = static_cast<std::byte*>(a.bucket.parts[piece.part].out) + piece.out * element;
      a.to_result(to, slot + piece.in_chunk * element, piece.count * element);
    });
  }
}

}  // namespace horo::runtime
