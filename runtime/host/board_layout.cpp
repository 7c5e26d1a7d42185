// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/board_layout.hpp"

#include <algorithm>
#include <bit>

namespace horo::runtime {

namespace {

constexpr std::uint64_t kRingBudget = 4 << 20;  // Bytes of rings in one direction per core.

// Each rank has a chunk for each rank, so the rings would grow with the square of the ranks: 607 MB
// for 192. They may take so much in all, and then hold two chunks, of the size that is left.
constexpr std::uint64_t kAllRings = 48 << 20;
constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kChainSlots =
    64;  // With pieces of 64 KiB: 4 MiB, which shared caches hold.
constexpr std::uint64_t kLeastChunk = 512;  // Holds a unit of an Adasum of any type.

constexpr std::uint64_t kNameBytes = 256;  // Room for one name; most are shorter, some longer.
constexpr std::uint64_t kPayloadBudget = 128 << 10;  // All members' payloads of one tensor.
constexpr std::uint64_t kMostOfShare = std::uint64_t{1} << 30U;

/// The largest payload beside a mark. Each member has two places, by the parity of generations.
std::uint64_t largest_payload(std::uint64_t members) {
  return std::min(kMostInlineBytes, std::bit_floor(kPayloadBudget / (2 * members)));
}

/// Chooses the chunks of the rings, and how many a ring holds.
void size_rings(const BoardParams& p, BoardLayout& l) {
  const std::uint64_t n = p.local_size;
  const auto budget = p.cores == 0 || p.cores >= n ? kRingBudget : kRingBudget * p.cores / n;
  const auto chunk_of = [&](std::uint64_t slots) {
    return std::min(p.chunk_bytes, std::max(kPage, budget / (slots * n) / kPage * kPage));
  };
  l.ring_slots = p.ring_slots;
  l.staged_chunk = chunk_of(l.ring_slots);
  if (n * (n + 1) * l.ring_slots * l.staged_chunk > kAllRings) {
    l.ring_slots = kLeastRingSlots;
    const auto left = kAllRings / (n * (n + 1) * l.ring_slots) / kLine * kLine;
    l.staged_chunk = std::max(kLeastChunk, std::min(chunk_of(l.ring_slots), left));
  }
  l.ring_bytes = paged(l.ring_slots * (n + 1) * l.staged_chunk);
}

}  // namespace

BoardLayout BoardLayout::of(const BoardParams& p, bool rings) {
  BoardLayout l;
  const std::uint64_t n = p.local_size;
  size_rings(p, l);
  // Room for more than the entries in flight, each with an id and a row count per rank and tensor.
  l.word_count = std::bit_ceil(std::uint64_t{4} * p.depth * p.capacity) * (n > 16 ? 4 : 2);
  std::uint64_t at = 0;
  const auto take = [&at](std::uint64_t bytes) {
    const auto here = at;
    at += paged(bytes);
    return here;
  };
  l.body = take(sizeof(BoardBody));
  l.ranks = take(n * sizeof(RankArea));
  l.log = take(kLogSlots * sizeof(LogSlot));
  l.buckets = take(std::uint64_t{2} * p.capacity * sizeof(std::uint32_t));
  l.ready = take(p.capacity * sizeof(std::uint32_t));
  l.pending = take(p.capacity * sizeof(PendingSlot));
  l.words = take(l.word_count * sizeof(std::uint64_t));
  if (!rings || n == 1) l.ring_bytes = 0;
  if (rings && n > kMostWithoutGroups && p.cores != 0 && p.cores < n) l.chain_slots = kChainSlots;
  l.chain = take(l.chain_slots * kChainPiece);
  l.rings = take(n * l.ring_bytes);
  l.heap = at;  // From here on memory is taken as it is needed.
  l.inline_bytes = largest_payload(n);
  const auto share = [&](HeapUse use, std::uint64_t each, std::uint64_t most) {
    const auto bytes = paged(std::min(p.capacity * each, most));
    l.heap_shares[static_cast<std::size_t>(use)] = bytes;
    l.heap_bytes += bytes;
  };
  share(HeapUse::names, kNameBytes, ~std::uint64_t{0});
  share(HeapUse::records, sizeof(TensorAside) + kHeapUnit, ~std::uint64_t{0});
  share(HeapUse::payloads, 2 * n * l.inline_bytes, kMostOfShare);
  share(HeapUse::splits, 2 * n * n * sizeof(std::uint64_t) + kHeapUnit, kMostOfShare);
  at += l.heap_bytes;
  l.tensors = take(p.capacity * sizeof(TensorSlot));
  l.mark_groups = n > kMostWithoutGroups ? (n + kMarkGroup - 1) / kMarkGroup : 0;
  l.marks = take(p.capacity * l.mark_groups * sizeof(MarkGroup));
  l.rank_tensors = take(p.capacity * n * sizeof(RankTensor));
  // Each rank's of each tensor, each tensor's, and the one that is being declared.
  l.most_signatures = p.capacity * (n + 1) + 1;
  l.signatures = take(l.most_signatures * sizeof(Signature));
  l.total = at;
  return l;
}

Status validate(const BoardParams& p) {
  const bool good =
      p.local_size >= 1 && p.local_size <= static_cast<std::uint32_t>(kMostLocalRanks) &&
      p.capacity >= kLeastCapacity && p.capacity <= (1U << 20U) &&
      std::has_single_bit(p.capacity) && p.ring_slots >= kLeastRingSlots && p.ring_slots <= 64 &&
      p.depth >= 1 && p.depth <= 16 && p.chunk_bytes >= kPage && p.chunk_bytes <= (4U << 20U) &&
      p.chunk_bytes % 64 == 0 && p.arena_bytes % kPage == 0 && p.arena_bytes <= (1ULL << 42U);
  if (good) return {};
  return fail(Errc::invalid_argument,
              "board parameters out of range: {} local ranks (most {}), capacity {}, ring {}, "
              "chunk {}, arena {}",
              p.local_size, kMostLocalRanks, p.capacity, p.ring_slots, p.chunk_bytes,
              p.arena_bytes);
}

}  // namespace horo::runtime
