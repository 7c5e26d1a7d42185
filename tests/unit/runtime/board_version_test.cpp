// SPDX-License-Identifier: Apache-2.0
// A board is shared by processes that may run different builds, which compare kBoardVersion. So a
// change of its layout must raise that number.
#include <array>
#include <cstdint>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "base/board_header.hpp"
#include "runtime/host/host_layout.hpp"

namespace horo::runtime {

namespace {

struct KnownLayout {
  std::uint32_t version;
  std::uint64_t digest;
};

/// One row for each version. Rows are added at the end and never changed.
constexpr std::array kKnown = {KnownLayout{3, 0x37e5d03154afcb05}};

/// Numbers that say where everything lies.
class LayoutDigest {
 public:
  /// The size of a structure, and the place and size of all its fields.
  template <typename Structure, typename... Fields>
  void add(const Structure& structure, const Fields&... fields) {
    mix(sizeof structure);
    const auto* const start = reinterpret_cast<const char*>(&structure);
    (mix_field(start, fields), ...);
  }

  void mix(std::uint64_t number) {
    constexpr std::uint64_t kPrime = 0x100000001b3;  // FNV-1a
    for (int byte = 0; byte < 8; ++byte)
      value_ = (value_ ^ (number >> (8 * byte) & 0xffU)) * kPrime;
  }

  std::uint64_t value() const { return value_; }

 private:
  template <typename Field>
  void mix_field(const char* start, const Field& field) {
    mix(static_cast<std::uint64_t>(reinterpret_cast<const char*>(&field) - start));
    mix(sizeof field);
  }

  std::uint64_t value_ = 0xcbf29ce484222325;
};

// A structured binding must name all fields: whoever adds one is led here by the compiler.

void add_header(LayoutDigest& digest) {
  static const BoardHeader header{};
  const auto& [magic, version, local_size, nonce, epoch, secret, poison, claimed, host, notice,
               body_state, body_bytes, slots] = header;
  digest.add(header, magic, version, local_size, nonce, epoch, secret, poison, claimed, host,
             notice, body_state, body_bytes, slots);
  const auto& [state, pid, ack, kill_sent, heard, bell] = header.first_slot[0];
  digest.add(header.first_slot[0], state, pid, ack, kill_sent, heard, bell);
  const auto& [rings, callers, threads] = bell;
  digest.add(bell, rings, callers, threads);
}

void add_host(LayoutDigest& digest) {
  static const HostBody body{};
  const auto& [params, sleepers, waiters, gone, place, written, text, regions] = body;
  digest.add(body, params, sleepers, waiters, gone, place, written, text, regions);
  const auto& [laid_out, users] = regions[0];
  digest.add(regions[0], laid_out, users);
  const auto& [local_size, capacity, slots, depth, chunk, arena, tuning, cores] = params;
  digest.add(params, local_size, capacity, slots, depth, chunk, arena, tuning, cores);
  const auto& [fusion, cycle, delay, small] = tuning;
  digest.add(tuning, fusion, cycle, delay, small);
  static const HostRank rank{};
  const auto& [drive, interest, called, needs, global, core, call, waits, mask] = rank;
  digest.add(rank, drive, interest, called, needs, global, core, call, waits, mask);
}

void add_body(LayoutDigest& digest) {
  static const BoardBody body{};
  const auto& [tail, needed, in_place, combiner, pending, head, word, places, ready, bytes, first,
               joins, last, joined, told, joined_told, joins_taken, leaves, leaves_taken, waits,
               closed, done, leaving, stalls, lock, tensors, heap, shares, allocated, signatures,
               limit, free, interned] = body;
  digest.add(body, tail, needed, in_place, combiner, pending, head, word, places, ready, bytes,
             first, joins, last, joined, told, joined_told, joins_taken, leaves, leaves_taken,
             waits, closed, done, leaving, stalls, lock, tensors, heap, shares, allocated,
             signatures, limit, free, interned);
  const auto& [due, looked, since, progress, moved] = stalls;
  digest.add(stalls, due, looked, since, progress, moved);
  static const RankArea area{};
  const auto& [cursor, in, reduced, out, direct, chained, chained_out, taken, awaited, result] =
      area;
  digest.add(area, cursor, in, reduced, out, direct, chained, chained_out, taken, awaited, result);
}

void add_log(LayoutDigest& digest) {
  static const LogSlot slot{};
  const auto& [sequence, kind, path, count, partial, words, first, bytes, place] = slot;
  digest.add(slot, sequence, kind, path, count, partial, words, first, bytes, place);
  static const PendingSlot waiting{};
  const auto& [id, its_path, its_kind, is_partial, its_bytes, key] = waiting;
  digest.add(waiting, id, its_path, its_kind, is_partial, its_bytes, key);
}

void add_tensors(LayoutDigest& digest) {
  static const TensorSlot slot{};
  const auto& [arrived, members, entry, generation, signature, incarnation, parked, hash, name,
               inline_place, aside, length, room, inline_bytes, held] = slot;
  digest.add(slot, arrived, members, entry, generation, signature, incarnation, parked, hash, name,
             inline_place, aside, length, room, inline_bytes, held);
  static const TensorAside record{};
  const auto& [parked_ids, group, refs, splits] = record;
  digest.add(record, parked_ids, group, refs, splits);
  static const RankTensor mine{};
  const auto& [marked, in, out, in_group, declared, pins, ticks] = mine;
  digest.add(mine, marked, in, out, in_group, declared, pins, ticks);
  static const MarkGroup marks{};
  digest.add(marks, marks.word);
  static const Signature like{};
  const auto& [kind, op, dtype, ndim, root, before, after, elements, row, extents_hash, extents,
               wire, feedback, memory, unused] = like;
  digest.add(like, kind, op, dtype, ndim, root, before, after, elements, row, extents_hash, extents,
             wire, feedback, memory, unused);
}

void add_numbers(LayoutDigest& digest) {
  for (const std::uint64_t number :
       {std::uint64_t{kMaxLocalRanks}, std::uint64_t{kPage}, std::uint64_t{kMaskWords},
        std::uint64_t{kMostWithoutGroups}, std::uint64_t{kMarkGroup}, std::uint64_t{kMostRegions},
        std::uint64_t{kLogSlots}, kHeapUnit, kNameUnit, std::uint64_t{kInterned}, kChainPiece,
        std::uint64_t{kSharedPlaces}, std::uint64_t{kCounts}, std::uint64_t{kHeapUses}})
    digest.mix(number);
}

std::uint64_t digest_of_layout() {
  LayoutDigest digest;
  add_header(digest);
  add_host(digest);
  add_body(digest);
  add_log(digest);
  add_tensors(digest);
  add_numbers(digest);
  return digest.value();
}

}  // namespace

TEST_CASE("a change of the board's layout has a version of its own") {
  const auto digest = digest_of_layout();
  INFO(
      fmt::format("the layout has the digest {:#x}; if you have changed it, raise kBoardVersion "
                  "(base/board_header.hpp) and add a row with both numbers here",
                  digest));
  CHECK(kKnown.back().version == kBoardVersion);
  CHECK(kKnown.back().digest == digest);
  for (std::size_t row = 1; row < kKnown.size(); ++row)
    CHECK(kKnown.at(row).version > kKnown.at(row - 1).version);
}

}  // namespace horo::runtime
