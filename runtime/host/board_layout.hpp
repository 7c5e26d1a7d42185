// SPDX-License-Identifier: Apache-2.0
// Where things lie in the region of one process set. All is plain data, and zero is every field's
// valid first value. Offsets count from the region's start. docs/design/board.md has the protocol.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/board_header.hpp"
#include "runtime/tensor/signature.hpp"
#include "runtime/tensor/tuning.hpp"

namespace horo::runtime {

inline constexpr std::uint64_t kPage = 4096;  ///< Bytes of a memory page.

/// The least number of bytes in whole pages that holds `bytes`.
constexpr std::uint64_t paged(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

inline constexpr std::size_t kMaskWords = 4;
inline constexpr int kMostLocalRanks = 64 * static_cast<int>(kMaskWords);
/// Sets of more members mark tensors in groups of kMarkGroup members: see MarkCounts.
inline constexpr std::uint32_t kMostWithoutGroups = 32;
inline constexpr std::size_t kMarkGroup = 16;
inline constexpr std::size_t kMostSets = 256;  ///< Process sets at a time, the world included.
/// A set has one region, and two more if its backend works by hosts: one per step inside the host.
inline constexpr std::size_t kMostRegions = 3 * kMostSets;
inline constexpr std::size_t kLogSlots = 64;
inline constexpr std::uint32_t kLeastCapacity = 16;  ///< Tensors.
inline constexpr std::uint64_t kDirectChunk = 64
                                              << 10;  ///< Bytes a rank reduces in place at a time.
inline constexpr std::uint64_t kMostInlineBytes =
    4096;  ///< Largest payload that travels beside its mark, with few members.
inline constexpr std::uint64_t kHeapUnit = 64;
inline constexpr std::uint64_t kNameUnit = 16;
inline constexpr std::uint32_t kLeastRingSlots = 2;  ///< One is filled while the other is read.
/// Signatures that can be found by their hash.
inline constexpr std::size_t kInterned = 1024;

/// The first rank of the host that attaches chooses these from its knobs; all ranks use them.
struct BoardParams {
  std::uint32_t local_size = 1;           ///< Members on this host.
  std::uint32_t capacity = 8192;          ///< Tensors, a power of two.
  std::uint32_t ring_slots = 4;           ///< Chunks in flight per rank and direction.
  std::uint32_t depth = 2;                ///< Log entries in flight.
  std::uint64_t chunk_bytes = 512 << 10;  ///< Size of a chunk of a staged bucket.
  std::uint64_t arena_bytes = std::uint64_t{1}
                              << 34;  ///< Address space per rank for shared tensors.
  Tuning tuning;                      ///< At the start of a set.
  std::uint32_t cores = 0;  ///< The machine's, whose caches hold the rings; 0: one per member.

  friend bool operator==(const BoardParams&, const BoardParams&) = default;
};

/// How an entry's data moves; the same on all ranks.
enum class DataPath : std::uint8_t {
  alone = 0,     ///< The set has one rank: from its input to its output.
  in_marks = 1,  ///< Payloads lie beside the marks; no rank waits for another.
  direct = 2,    ///< Inputs (and outputs) lie in the ranks' arenas.
  staged = 3,    ///< Through the rings.
  carried = 4,   ///< The entry has all members' inputs; no rank waits for another.
};

enum class EntryKind : std::uint8_t {
  work = 1,
  mismatch = 2,
  join = 3,
  left = 4,    ///< A rank of any host has left the set: nothing is appended any more.
  tuning = 5,  ///< The members' tuning changes here.
};

struct alignas(64) LogSlot {
  std::uint64_t sequence;  ///< Entry number + 1.
  EntryKind kind;
  DataPath path;
  std::uint32_t count;  ///< Tensors.
  bool partial;         ///< Joined ranks take part without having submitted.
  std::uint32_t words;  ///< Length in the ring of words: see Entry.
  std::uint64_t first_word;
  std::uint64_t bytes;
  std::uint64_t place;  ///< See StartPlaces; 0: in host memory.
};

/// A ready tensor that waits for an entry; only the holder of the combiner word touches it.
struct PendingSlot {
  std::uint32_t id;
  DataPath path;
  EntryKind kind;
  bool partial;
  std::uint64_t bytes;
  std::uint64_t fuse_key;
};

/// The counted marks of one generation. They share one word, so that the last mark sees all.
namespace arrivals {
inline constexpr std::uint64_t kMark = 1;
inline constexpr std::uint64_t kDirect = 1ULL << 16U;
inline constexpr std::uint64_t kInline = 1ULL << 32U;
inline constexpr std::uint64_t kChanged = 1ULL << 48U;

/// Set by the rank that puts the tensor on the ready list although some ranks have not marked it.
inline constexpr std::uint64_t kReady = 1ULL << 15U;

constexpr std::uint32_t marks(std::uint64_t word) {
  return static_cast<std::uint32_t>(word & 0x7fffU);
}

constexpr std::uint32_t direct(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 16U & 0xffffU);
}

constexpr std::uint32_t in_line(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32U & 0xffffU);
}

constexpr std::uint32_t changed(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 48U & 0xffffU);
}
}  // namespace arrivals

/// One tensor: its name and its marks. The slot keeps its places in the heap when it gets another
/// name; places only ever grow.
struct alignas(64) TensorSlot {
  std::atomic<std::uint64_t> arrivals;
  std::atomic<std::uint64_t> members;        ///< Bit per member that has marked; without groups.
  std::atomic<std::uint64_t> last_entry;     ///< Number + 1 of its last entry; at first, the tail.
  std::atomic<std::uint32_t> generation;     ///< Entries that the tensor was in.
  std::atomic<std::uint32_t> signature;      ///< Number of the one that all agreed on last.
  std::atomic<std::uint32_t> incarnation;    ///< Names that the slot had before this one.
  std::atomic<std::uint32_t> parked_before;  ///< Id + 1 of the group's tensor parked before it.
  std::uint32_t name_hash;
  std::uint32_t name_place;                 ///< In the heap, in units of kNameUnit.
  std::atomic<std::uint32_t> inline_place;  ///< In the heap, in units of kHeapUnit.
  std::atomic<std::uint32_t> aside_place;   ///< Place of the TensorAside, same units; 0: none.
  std::uint16_t name_length;
  std::uint16_t name_room;                     ///< In units of kNameUnit.
  std::atomic<std::uint16_t> inline_capacity;  ///< Bytes per rank and generation; 0: none.
  std::atomic<std::uint8_t> held;  ///< 1: the leader's next entry needs the slot; no rank pins it.
};

static_assert(sizeof(TensorSlot) == 64);

/// Marks of one group of members; only MarkCounts uses it.
struct alignas(64) MarkGroup {
  std::atomic<std::uint64_t> word;
};

/// Fields that only the slots of groups and alltoalls need.
struct alignas(64) TensorAside {
  /// Tensors of the group that wait for the others << 32 | id + 1 of the last one.
  std::atomic<std::uint64_t> parked;
  std::uint32_t group_size;  ///< Tensors of the group.
  std::uint32_t group_refs;  ///< Ranks' tensors that are in the group.
  /// u64[2][local_size][local_size] by parity of the generation, sender, receiver; 0: none.
  std::atomic<std::uint64_t> splits_offset;
};

/// Tensors that become ready together.
struct GroupRef {
  std::uint32_t slot = 0;  ///< Id + 1 of the group's own slot; 0: in no group.
  std::uint32_t size = 0;  ///< Tensors.

  friend bool operator==(const GroupRef&, const GroupRef&) = default;
};

/// One rank's side of one tensor. The rank writes it before its mark.
struct RankTensor {
  std::atomic<std::uint64_t> marked_at;  ///< Time of the last mark, by the rank's `last_call`.
  std::atomic<std::uint64_t> in_offset;
  std::atomic<std::uint64_t> out_offset;
  std::atomic<std::uint32_t> group;      ///< Id + 1 of its group's own slot; 0: in none.
  std::atomic<std::uint32_t> signature;  ///< Number of what this rank has declared; 0: nothing.
  std::atomic<std::uint32_t> pins;  ///< Uses by this rank; while not 0 the name keeps its slot.
  std::atomic<std::uint32_t> marked_ticks;  ///< Time of the last mark, see short_ticks().
};

/// A time in ticks of timeline/record/ticks.hpp, in few bits: differences of up to half an hour are
/// exact to half a microsecond.
constexpr std::uint32_t short_ticks(std::uint64_t ticks) {
  return static_cast<std::uint32_t>(ticks >> 10U);
}

/// The ticks from `earlier` to `now`.
constexpr std::uint64_t ticks_between(std::uint32_t earlier, std::uint64_t now) {
  return std::uint64_t{short_ticks(now) - earlier} << 10U;
}

/// A count that starts at zero for each bucket that uses its place, although no rank resets it:
/// round << 32 | count, where an older round counts as zero.
class RoundCount {
 public:
  /// Adds one, up to `most`, and returns the count before; `most`: there is none left.
  std::uint32_t take(std::uint32_t round, std::uint32_t most) {
    auto word = word_.load(std::memory_order_relaxed);
    for (;;) {
      const auto count = in_round(word, round);
      if (count >= most) return most;
      if (word_.compare_exchange_weak(word, pack(round, count + 1), std::memory_order_acq_rel))
        return count;
    }
  }

  /// Adds `more` and returns the sum; seq_cst for the sleepers, see SetBells.
  std::uint32_t add(std::uint32_t round, std::uint32_t more) {
    auto word = word_.load(std::memory_order_relaxed);
    for (;;) {
      const auto sum = in_round(word, round) + more;
      if (word_.compare_exchange_weak(word, pack(round, sum), std::memory_order_seq_cst))
        return sum;
    }
  }

  std::uint32_t count(std::uint32_t round) const {
    return in_round(word_.load(std::memory_order_seq_cst), round);
  }

 private:
  static std::uint32_t in_round(std::uint64_t word, std::uint32_t round) {
    return word >> 32U == round ? static_cast<std::uint32_t>(word) : 0;
  }

  static std::uint64_t pack(std::uint32_t round, std::uint32_t count) {
    return std::uint64_t{round} << 32U | count;
  }

  std::atomic<std::uint64_t> word_;
};

/// The largest piece of a chain, in bytes.
inline constexpr std::uint64_t kChainPiece = 64 << 10;

/// Places that buckets reduced in place use in turn: more than entries can be in flight.
inline constexpr std::size_t kSharedPlaces = 32;

/// The counters of steps in RankArea.
enum class Count : std::uint8_t {
  copied_in,
  reduced,
  copied_out,
  direct_done,
  chained,      ///< Pieces of chains that the member has added its input to.
  chained_out,  ///< Those whose result it has.
};
inline constexpr std::size_t kCounts = 6;

/// Value of RankArea::awaited: the member waits for nothing.
inline constexpr std::uint64_t kNotAwaited = ~std::uint64_t{0};

/// Counters of one member. The holder of its progress token writes them, all read them. They only
/// grow.
struct alignas(128) RankArea {
  std::atomic<std::uint64_t> cursor;  ///< Log entries done.
  alignas(64) std::atomic<std::uint64_t> copied_in;
  alignas(64) std::atomic<std::uint64_t> reduced;
  alignas(64) std::atomic<std::uint64_t> copied_out;
  alignas(64) std::atomic<std::uint64_t> direct_done;
  alignas(64) std::atomic<std::uint64_t> chained;
  alignas(64) std::atomic<std::uint64_t> chained_out;
  /// Chunks of this member's share of a bucket that a rank has taken; written by all.
  alignas(64) std::array<RoundCount, kSharedPlaces> taken;
  /// By Count: the value of all others' counters that this member sleeps for; for `chained`, of the
  /// counter of the member before it.
  alignas(64) std::array<std::atomic<std::uint64_t>, kCounts> awaited;
  std::atomic<std::uint64_t> awaited_result;  ///< The value of the last member's `chained`.

  std::atomic<std::uint64_t>& count(Count which) {
    switch (which) {
      case Count::copied_in:
        return copied_in;
      case Count::reduced:
        return reduced;
      case Count::copied_out:
        return copied_out;
      case Count::direct_done:
        return direct_done;
      case Count::chained:
        return chained;
      case Count::chained_out:
        break;
    }
    return chained_out;
  }
};

/// When a rank looks for stalls; times are ns of the monotonic clock. The rank that moves `due` on
/// looks, and has the rest to itself until that time.
struct StallSchedule {
  std::atomic<std::uint64_t> due;       ///< 0: nothing is pending, no rank looks.
  std::atomic<std::uint64_t> looked;    ///< Last look: what was overdue then is reported.
  std::atomic<std::uint64_t> since;     ///< Ages count from here: before, the job stood still.
  std::atomic<std::uint64_t> progress;  ///< Sum of the members' counters when last seen ...
  std::atomic<std::uint64_t> moved_at;  ///< ... to change, at this time.
};

/// The uses of a region's heap. Each use has a share of its own: small tensors cannot take the
/// memory of names.
enum class HeapUse : std::uint8_t {
  names,
  records,   ///< TensorAside: groups and alltoalls have one.
  payloads,  ///< Small tensors without a place move through the rings.
  splits,    ///< Alltoalls have them.
};
inline constexpr std::size_t kHeapUses = 4;

struct BoardBody {
  alignas(128) std::atomic<std::uint64_t> tail;  ///< Entries published.
  /// The number behind the last entry that peers need each member to run soon. The later ones wait
  /// until the member looks by itself.
  std::atomic<std::uint64_t> needed;

  /// Chunks done, of buckets reduced in place.
  alignas(128) std::array<RoundCount, kSharedPlaces> reduced_in_place;

  alignas(128) std::atomic<std::uint32_t> combiner;  ///< Local rank + 1 of the holder; 0 free.
  // Written by the holder of the combiner word:
  std::atomic<std::uint32_t> pending_count;
  std::atomic<std::uint64_t> ready_head;
  std::uint64_t next_word;
  std::atomic<std::uint64_t> places_wait;  ///< Only StartPlaces uses it.

  alignas(128) std::atomic<std::uint64_t> ready_tail;
  std::atomic<std::uint64_t> ready_bytes;
  std::atomic<std::uint64_t> first_ready;  ///< When the oldest ready tensor became ready, in ticks
                                           ///< of timeline/record/ticks.hpp; 0: none.

  /// Members without further data, and the last of them; reset when all have joined.
  alignas(128) std::atomic<std::uint32_t> join_count;
  std::atomic<std::int32_t> last_joined;
  std::array<std::atomic<std::uint64_t>, kMaskWords> joined;

  // For a set with members on other hosts: what members have told its leader, and what the leader
  // has taken.
  alignas(128) std::atomic<std::uint32_t> joins_told;  ///< Members that have finished joining.
  std::array<std::atomic<std::uint64_t>, kMaskWords> joined_told;
  std::atomic<std::uint32_t> joins_taken;
  std::atomic<std::uint32_t> leaves;
  std::atomic<std::uint32_t> leaves_taken;
  std::atomic<std::uint32_t> entries_wait;  ///< 1: an agreed entry waits for room in the log.
  std::atomic<std::uint32_t> closed;        ///< 1: the log has an entry `left`.
  std::atomic<std::uint64_t> done_taken;    ///< Entries that have been run, as the leader knows.
  std::array<std::atomic<std::uint64_t>, kMaskWords> leaving;

  alignas(128) StallSchedule stalls;

  alignas(128) futex::Word directory_lock;
  std::atomic<std::uint32_t> tensor_count;
  std::uint64_t heap_used;
  std::array<std::uint64_t, kHeapUses> heap_shares_used;  ///< Sum: `heap_used`.
  std::uint64_t heap_allocated;
  std::uint32_t signature_count;  ///< The most that have existed at a time.
  std::uint32_t signature_limit;  ///< Unused ones are freed before more than these are made.
  std::uint32_t free_signature;   ///< Number of the first free one; 0: none.
  std::array<std::uint32_t, kInterned> interned;  ///< By hash: the number of the last one.
};

/// Offsets of everything for given parameters. Pure.
struct BoardLayout {
  std::uint64_t body = 0;
  std::uint64_t buckets = 0;       ///< u32[2 * capacity]: tensor id + 1
  std::uint64_t tensors = 0;       ///< TensorSlot[capacity]
  std::uint64_t marks = 0;         ///< MarkGroup[capacity][mark_groups]
  std::uint64_t mark_groups = 0;   ///< Groups of members that mark; 0: all count in one word.
  std::uint64_t rank_tensors = 0;  ///< RankTensor[local_size][capacity]
  std::uint64_t signatures = 0;    ///< Signature[most_signatures]
  std::uint64_t most_signatures = 0;
  std::uint64_t ready = 0;    ///< atomic u32[capacity]: tensor id + 1
  std::uint64_t pending = 0;  ///< PendingSlot[capacity]
  std::uint64_t log = 0;      ///< LogSlot[kLogSlots]
  std::uint64_t words = 0;    ///< u64[word_count]
  std::uint64_t word_count = 0;
  std::uint64_t ranks = 0;  ///< RankArea[local_size]
  std::uint64_t rings = 0;  ///< per rank: in[ring_slots][local_size][chunk], out[ring_slots][chunk]
  std::uint64_t ring_bytes = 0;    ///< of one rank; 0: the region has no rings
  std::uint64_t ring_slots = 0;    ///< Those of the parameters, or fewer with many ranks.
  std::uint64_t staged_chunk = 0;  ///< Chunk size of the rings: smaller on hosts with many ranks.
  std::uint64_t chain = 0;         ///< byte[chain_slots][kChainPiece]
  std::uint64_t chain_slots = 0;  ///< Pieces of chains in flight; 0: the set's sums form no chains.
  std::uint64_t heap = 0;         ///< names, payload slots and splits
  std::uint64_t heap_bytes = 0;
  std::array<std::uint64_t, kHeapUses> heap_shares{};  ///< Their sum is `heap_bytes`.
  std::uint64_t inline_bytes = 0;  ///< Largest payload beside a mark: smaller with many members.
  std::uint64_t total = 0;

  /// Without rings for a set whose data does not move through this region.
  static BoardLayout of(const BoardParams& params, bool rings = true);

  /// Bytes that are backed with memory from the start: by the first rank up to the rings, and by
  /// each rank its own ring.
  std::uint64_t fixed_bytes() const { return heap; }
};

/// Checks values read from shared memory or knobs. Fails: invalid_argument.
Status validate(const BoardParams& params);

}  // namespace horo::runtime
