// SPDX-License-Identifier: Apache-2.0
// Where things lie on a board, the region of one process set: plain data, zero is every field's
// valid first value, offsets from the region's start. docs/design/board.md tells the protocol.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/board_header.hpp"
#include "runtime/signature.hpp"

namespace horo::runtime {

inline constexpr std::size_t kMaskWords = 4;
inline constexpr int kMostLocalRanks = 64 * static_cast<int>(kMaskWords);
inline constexpr std::size_t kMostSets = 256;  ///< Process sets at a time, the world included.
/// A set's own, and two more for the steps inside a host of one that spans hosts.
inline constexpr std::size_t kMostRegions = 3 * kMostSets;
inline constexpr std::size_t kLogSlots = 64;
inline constexpr std::uint32_t kLeastCapacity = 16;  ///< Tensors of a board.
inline constexpr std::uint64_t kDirectChunk = 64
                                              << 10;  ///< Bytes a rank reduces in place at a time.
inline constexpr std::uint64_t kInlineBytes =
    4096;  ///< Largest payload that travels beside its mark.
inline constexpr std::uint64_t kHeapUnit = 64;
inline constexpr std::uint64_t kNameUnit = 16;
inline constexpr std::size_t kInterned = 1024;  ///< Signatures that are looked for.

/// Chosen by the first rank of the host that attaches, from its knobs; all ranks use these.
struct BoardParams {
  std::uint32_t local_size = 1;           ///< Members on this host.
  std::uint32_t capacity = 8192;          ///< Tensors, a power of two.
  std::uint32_t ring_slots = 4;           ///< Chunks in flight per rank and direction.
  std::uint32_t depth = 2;                ///< Log entries in flight.
  std::uint64_t chunk_bytes = 512 << 10;  ///< Staged.
  std::uint64_t arena_bytes = std::uint64_t{1}
                              << 34;  ///< Address space per rank for shared tensors.
  std::uint64_t fusion_threshold = 64 << 20;
  std::uint64_t cycle_ns = 0;
  std::uint64_t wake_delay_ns = 50'000;
  std::uint32_t cores = 0;  ///< Of this machine, whose caches hold the rings; 0: one per member.

  friend bool operator==(const BoardParams&, const BoardParams&) = default;
};

/// How an entry's bytes move; the same on all ranks.
enum class Placement : std::uint8_t {
  alone = 0,     ///< One rank: from `in` to `out`.
  in_marks = 1,  ///< Payloads lie beside the marks; nobody waits for anybody.
  direct = 2,    ///< Inputs (and outputs) lie in the ranks' arenas.
  staged = 3,    ///< Through the rings.
};

enum class EntryKind : std::uint8_t {
  work = 1,
  mismatch = 2,
  join = 3,
  left = 4,  ///< A rank of any host has left the set: what is not in the log by now never will be.
};

struct alignas(64) LogSlot {
  std::uint64_t sequence;  ///< Entry number + 1.
  EntryKind kind;
  Placement placement;
  std::uint32_t count;  ///< Tensors.
  bool partial;         ///< Ranks that have joined take part without having submitted.
  std::uint32_t words;  ///< Length in the word ring: see Entry.
  std::uint64_t first_word;
  std::uint64_t bytes;
};

/// One ready tensor waiting to be cut; touched by the holder of the combiner word only.
struct PendingSlot {
  std::uint32_t id;
  Placement placement;
  EntryKind kind;
  bool partial;
  std::uint64_t bytes;
  std::uint64_t fuse_key;
};

/// Marks of one generation, counted: all in one word, so that the last mark knows everything.
namespace arrivals {
inline constexpr std::uint64_t kMark = 1;
inline constexpr std::uint64_t kDirect = 1ULL << 16U;
inline constexpr std::uint64_t kInline = 1ULL << 32U;
inline constexpr std::uint64_t kChanged = 1ULL << 48U;

/// Set by who puts the tensor on the ready list although not all have marked it.
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

/// Whose a slot is, and what is under way with it. Places in the heap stay the slot's when it
/// changes hands, and only ever grow.
struct alignas(64) TensorSlot {
  std::atomic<std::uint64_t> arrivals;
  std::atomic<std::uint64_t> members;      ///< Bit per member that has marked: the first 64.
  std::atomic<std::uint64_t> last_entry;   ///< Number + 1 of its last one, or when it was new.
  std::atomic<std::uint32_t> generation;   ///< Entries that it was in.
  std::atomic<std::uint32_t> signature;    ///< Of the last agreed submission; see Board::signature.
  std::atomic<std::uint32_t> incarnation;  ///< Names that it had before this one.
  std::atomic<std::uint32_t> parked_before;  ///< Of a group's member: id + 1 of the one before it.
  std::uint32_t name_hash;
  std::uint32_t name_place;                 ///< In the heap, in units of kNameUnit.
  std::atomic<std::uint32_t> inline_place;  ///< In the heap, in units of kHeapUnit.
  std::atomic<std::uint32_t> aside_place;   ///< Of its TensorAside, in the same; 0: it has none.
  std::uint16_t name_length;
  std::uint16_t name_room;                     ///< In units of kNameUnit.
  std::atomic<std::uint16_t> inline_capacity;  ///< Bytes per rank and generation; 0: none.
  std::atomic<std::uint8_t> held;  ///< 1: for the leader's next entry, without a rank's pin.
};

static_assert(sizeof(TensorSlot) == 64);

/// What few tensors need: groups' own slots, and alltoalls.
struct alignas(64) TensorAside {
  /// How many members of the group wait for the others << 32 | the last one's id + 1.
  std::atomic<std::uint64_t> parked;
  std::uint32_t group_size;  ///< Members of the group.
  std::uint32_t group_refs;  ///< Ranks' tensors that are in it.
  /// u64[2][local_size][local_size], by generation's parity, sender and receiver; 0: none.
  std::atomic<std::uint64_t> splits_offset;
};

/// Tensors that become ready together.
struct GroupRef {
  std::uint32_t slot = 0;  ///< Id + 1 of the group's own slot; 0: in no group.
  std::uint32_t size = 0;  ///< Members.

  friend bool operator==(const GroupRef&, const GroupRef&) = default;
};

/// What one rank says of one tensor; written before its mark.
struct RankTensor {
  std::atomic<std::uint64_t> marked_at;  ///< Last, by the rank's `last_call`.
  std::atomic<std::uint64_t> in_offset;
  std::atomic<std::uint64_t> out_offset;
  std::atomic<std::uint32_t> group;      ///< Id + 1 of its group's own slot; 0: in none.
  std::atomic<std::uint32_t> signature;  ///< See Board::signature; 0: not declared by this rank.
  std::atomic<std::uint32_t> pins;       ///< Uses by this rank: the name keeps its slot meanwhile.
};

/// A count that begins again at zero with each bucket that uses its place, without anybody setting
/// it back: round << 32 | count, where an older round counts as zero.
class RoundCount {
 public:
  /// Counts one more, up to `most`, and returns how many there were; `most`: there is none left.
  std::uint32_t take(std::uint32_t round, std::uint32_t most) {
    auto word = word_.load(std::memory_order_relaxed);
    for (;;) {
      const auto count = in_round(word, round);
      if (count >= most) return most;
      if (word_.compare_exchange_weak(word, pack(round, count + 1), std::memory_order_acq_rel))
        return count;
    }
  }

  /// Adds `more` and returns the sum; seq_cst for the sleepers, see Board::wake().
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

/// Buckets reduced in place use these places in turn; more than entries can be in flight.
inline constexpr std::size_t kSharedPlaces = 32;

/// RankArea's counters of steps.
enum class Count : std::uint8_t { copied_in, reduced, copied_out, direct_done };
inline constexpr std::size_t kCounts = 4;

/// Of RankArea::awaited: nothing.
inline constexpr std::uint64_t kNotAwaited = ~std::uint64_t{0};

/// Counters of one member; written by its token's holder, read by all. They only grow.
struct alignas(128) RankArea {
  std::atomic<std::uint64_t> cursor;  ///< Log entries done.
  alignas(64) std::atomic<std::uint64_t> copied_in;
  alignas(64) std::atomic<std::uint64_t> reduced;
  alignas(64) std::atomic<std::uint64_t> copied_out;
  alignas(64) std::atomic<std::uint64_t> direct_done;
  /// Chunks of this member's share of a bucket that somebody has taken on; written by all.
  alignas(64) std::array<RoundCount, kSharedPlaces> taken;
  /// By Count: which value of all others' counters this member sleeps for.
  alignas(64) std::array<std::atomic<std::uint64_t>, kCounts> awaited;

  std::atomic<std::uint64_t>& count(Count which) {
    switch (which) {
      case Count::copied_in:
        return copied_in;
      case Count::reduced:
        return reduced;
      case Count::copied_out:
        return copied_out;
      case Count::direct_done:
        break;
    }
    return direct_done;
  }
};

/// Who looks after stalls, and when; times are ns of the monotonic clock. Whoever moves `due` on
/// looks, and is alone with the rest until then.
struct StallSchedule {
  std::atomic<std::uint64_t> due;       ///< 0: nothing is pending, nobody looks.
  std::atomic<std::uint64_t> looked;    ///< What was overdue then is reported.
  std::atomic<std::uint64_t> since;     ///< Time before does not count: the job stood still.
  std::atomic<std::uint64_t> progress;  ///< Sum of the members' counters when last seen ...
  std::atomic<std::uint64_t> moved_at;  ///< ... to change, at this time.
};

struct BoardBody {
  alignas(128) std::atomic<std::uint64_t> tail;  ///< Entries published.

  /// Chunks of a bucket reduced in place that are done.
  alignas(128) std::array<RoundCount, kSharedPlaces> reduced_in_place;

  alignas(128) std::atomic<std::uint32_t> combiner;  ///< Local rank + 1 of the holder; 0 free.
  std::atomic<std::uint32_t> pending_count;          ///< From here on: the combiner's.
  std::atomic<std::uint64_t> ready_head;
  std::uint64_t next_word;

  alignas(128) std::atomic<std::uint64_t> ready_tail;
  std::atomic<std::uint64_t> ready_bytes;
  std::atomic<std::uint64_t> first_ready;  ///< When the oldest ready tensor became so, in ticks of
                                           ///< timeline/ticks.hpp; 0: none.

  /// Members without further data, and which of them was the last; reset when all have joined.
  alignas(128) std::atomic<std::uint32_t> join_count;
  std::atomic<std::int32_t> last_joined;
  std::array<std::atomic<std::uint64_t>, kMaskWords> joined;

  /// A set with members on other hosts: what its leader here has not looked at yet.
  alignas(128) std::atomic<std::uint32_t> joins_told;  ///< All that a joiner has to do is done.
  std::array<std::atomic<std::uint64_t>, kMaskWords> joined_told;
  std::atomic<std::uint32_t> joins_taken;
  std::atomic<std::uint32_t> leaves;
  std::atomic<std::uint32_t> leaves_taken;
  std::atomic<std::uint32_t> entries_wait;  ///< 1: an agreed entry waits for room in the log.
  std::atomic<std::uint32_t> closed;        ///< 1: the log has an entry `left`.
  std::atomic<std::uint64_t> done_taken;    ///< Entries of which the leader knows that they ran.
  std::array<std::atomic<std::uint64_t>, kMaskWords> leaving;

  alignas(128) StallSchedule stalls;

  alignas(128) futex::Word directory_lock;
  std::atomic<std::uint32_t> tensor_count;
  std::uint64_t heap_used;
  std::uint64_t heap_allocated;
  std::uint32_t signature_count;  ///< That have ever been there at a time.
  std::uint32_t signature_limit;  ///< Before more are made, those that nobody has are freed.
  std::uint32_t free_signature;   ///< The first of those; 0: none.
  std::array<std::uint32_t, kInterned> interned;  ///< By hash, the last one.
};

/// Offsets of everything for given parameters. Pure.
struct BoardLayout {
  std::uint64_t body = 0;
  std::uint64_t buckets = 0;       ///< u32[2 * capacity]: tensor id + 1
  std::uint64_t tensors = 0;       ///< TensorSlot[capacity]
  std::uint64_t more_members = 0;  ///< atomic u64[capacity][kMaskWords - 1], for over 64 members
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
  std::uint64_t ring_bytes = 0;    ///< of one rank
  std::uint64_t staged_chunk = 0;  ///< Chunk size of the rings: smaller on hosts with many ranks.
  std::uint64_t heap = 0;          ///< names and payload slots
  std::uint64_t heap_bytes = 0;
  std::uint64_t total = 0;

  /// Without `rings`, for a set whose bytes do not move through this board.
  static BoardLayout of(const BoardParams& params, bool rings = true);

  /// Everything before the heap must be backed by memory from the start.
  std::uint64_t fixed_bytes() const { return heap; }
};

/// Checks values read from shared memory or knobs. Fails: invalid_argument.
Status validate(const BoardParams& params);

}  // namespace horo::runtime
