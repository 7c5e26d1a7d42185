// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/shm/shm_bucket.hpp"

#include <algorithm>
#include <utility>

namespace horo::runtime {

namespace {

constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kChainPieces = 32;           // A bucket has more where they are too large.
constexpr std::uint64_t kLeastChainPiece = 4 << 10;  // Bytes.
constexpr std::uint64_t kBeyondCaches = 16 << 20;    // Bytes of all ranks' results.
constexpr std::uint64_t kDirectCopy = 1 << 20;  // Bytes moved in place between two looks for news.

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

/// Chunk of at most `most` bytes that gives every rank something to do, in elements.
std::uint64_t chunk_elements(std::uint64_t elements, int ranks, std::uint64_t most,
                             std::size_t element) {
  const auto share = ceil_div(elements, static_cast<std::uint64_t>(ranks)) * element;
  const auto rounded = ceil_div(std::max<std::uint64_t>(share, 1), kLine) * kLine;
  return std::max<std::uint64_t>(1, std::min(most, rounded) / element);
}

/// The sum of the ranks so far, in the tensor's own type, is all that the next rank needs. Other
/// reductions need more: a wider sum, or the scaled inputs.
bool can_chain(const ShmBucket& a) {
  const auto dtype = a.what.dtype;
  if (a.direct() || a.bucket.like.kind != Kind::allreduce || a.what.op == ReduceOp::adasum ||
      a.what.prescale != 1 || dtype == DType::f16 || dtype == DType::bf16)
    return false;
  const bool floats = dtype == DType::f32 || dtype == DType::f64;
  return floats || (a.what.op != ReduceOp::average && a.what.postscale == 1);
}

/// Pieces of a chain: small enough that several ranks work at a time.
void measure_chain(ShmBucket& a) {
  const auto element = size_of(a.what.dtype);
  const auto share = ceil_div(a.lanes.total(0) * element, kChainPieces);
  const auto bytes = std::clamp(ceil_div(share, kLine) * kLine, kLeastChainPiece, kChainPiece);
  a.chained = true;
  a.chunk = bytes / element;
  a.steps = ceil_div(a.lanes.total(0), a.chunk);
}

void measure(ShmBucket& a, const Rings& rings) {
  const auto kind = a.bucket.like.kind;
  const auto element = size_of(a.bucket.like.dtype);
  const auto most = a.direct() ? kDirectChunk : rings.chunk_bytes();
  const auto n = static_cast<std::uint64_t>(a.ranks);
  a.lanes = Lanes(a.bucket, a.ranks);
  if (kind == Kind::allreduce && a.what.op == ReduceOp::adasum) {
    const auto staged = rings.chunk_bytes();
    a.chunk = (a.direct() ? kDirectCopy : staged) / element / kAdasumUnit * kAdasumUnit;
    a.pieces = ceil_div(a.lanes.longest(), a.chunk);
    // In place no rank waits for a ring: a pass is one step.
    a.adasum = std::make_unique<AdasumRun>(a.bucket.like, a.bucket.parts.size(), a.ranks,
                                           a.direct() ? 1 : a.pieces, staged);
    a.steps = a.adasum->steps();
    return;
  }
  if (rings.chain_slots() != 0 && can_chain(a)) return measure_chain(a);
  if (kind == Kind::allreduce) {
    a.chunk = chunk_elements(a.lanes.total(0), a.ranks, most, element);
    a.steps = ceil_div(ceil_div(a.lanes.total(0), a.chunk), n);
    return;
  }
  // Results larger than the caches bypass them.
  const auto lanes = kind == Kind::broadcast ? 1 : n;
  if (a.lanes.longest() * lanes * element * n >= kBeyondCaches)
    a.to_result = kernels::stream_copy_kernel();
  // Data that is only copied need not stay in a core's own cache.
  const auto piece = a.direct() && !reduces(kind) ? kDirectCopy : most;
  a.chunk = std::max<std::uint64_t>(1, piece / element);
  a.steps = ceil_div(a.lanes.longest(), a.chunk);
}

}  // namespace

ShmBucket make_shm_bucket(Bucket bucket, const Rings& rings) {
  ShmBucket a{.bucket = std::move(bucket), .me = rings.me(), .ranks = rings.local_size()};
  const auto& like = a.bucket.like;
  a.what = {.dtype = like.dtype,
            .op = like.op,
            .prescale = like.prescale,
            .postscale = like.postscale,
            .ranks = a.ranks};
  a.to_result = kernels::copy_kernel();
  measure(a, rings);
  return a;
}

Status find_peers(ShmBucket& a, const Rings& rings) {
  const auto kind = a.bucket.like.kind;
  const auto element = size_of(a.bucket.like.dtype);
  for (std::size_t p = 0; p < a.bucket.parts.size(); ++p) {
    const auto& part = a.bucket.parts[p];
    for (int r = 0; r < a.ranks; ++r) {
      const auto bytes = elements_from(a.bucket, p, r, a.ranks) * element;
      const bool reads = bytes != 0 && (kind != Kind::broadcast || r == a.bucket.like.root);
      const bool writes = bytes != 0 && kind == Kind::allreduce;
      HORO_TRY(const auto theirs,
               rings.buffers_of(part.id, r, {.bytes = bytes, .reads = reads, .writes = writes}));
      a.peer_in.push_back(theirs.in);
      a.peer_out.push_back(theirs.out);
    }
  }
  return {};
}

ShmChunk ShmBucket::chunk_of_lane(std::size_t lane, std::uint64_t step) const {
  const auto first = step * chunk;
  const auto all = lanes.total(lane);
  return {.lane = lane, .first = first, .count = first < all ? std::min(chunk, all - first) : 0};
}

ShmChunk ShmBucket::result_of(std::uint64_t step, int rank) const {
  switch (bucket.like.kind) {
    case Kind::allreduce:
      return part_for(step, rank);
    case Kind::allgather:
      return chunk_of_lane(static_cast<std::size_t>(rank), step);
    case Kind::broadcast:
      return rank == bucket.like.root ? chunk_of_lane(0, step) : ShmChunk{};
    case Kind::barrier:
    case Kind::join:
    case Kind::reducescatter:
    case Kind::alltoall:
      break;
  }
  return {};
}

ShmChunk ShmBucket::part_for(std::uint64_t step, int owner) const {
  if (adasum) {
    const auto stage = adasum->stage_of(step);
    if (stage.exchange) return {};
    return chunk_of_lane(static_cast<std::size_t>(owner), stage.step);
  }
  if (bucket.like.kind == Kind::allreduce) {
    const auto n = static_cast<std::uint64_t>(ranks);
    return chunk_of_lane(0, step * n + static_cast<std::uint64_t>(owner));
  }
  return chunk_of_lane(static_cast<std::size_t>(owner), step);
}

ShmChunk ShmBucket::part_from(std::uint64_t step, int source) const {
  if (bucket.like.kind == Kind::alltoall)
    return chunk_of_lane(static_cast<std::size_t>(ranks) + static_cast<std::size_t>(source), step);
  return part_for(step, me);
}

}  // namespace horo::runtime
