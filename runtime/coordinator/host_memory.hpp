// SPDX-License-Identifier: Apache-2.0
// What the ranks of one host share once, whatever process sets they are in: the header with bells
// and poison, who drives each rank's progress, the arenas, and a region for each set.
// One memfd holds it all; docs/design/board.md tells the protocol.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/board_header.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/coordinator/board_layout.hpp"

namespace horo::runtime {

/// Who moves a rank's share of the work right now; written by the holder of its progress token.
namespace drive {
inline constexpr std::uint32_t kNobody = 0;  ///< The runtime's thread sleeps, or is about to.
inline constexpr std::uint32_t kAwake = 1;   ///< Somebody drives and looks by himself: no wake-up.
inline constexpr std::uint32_t kAsleep = 2;  ///< The driver sleeps on the rank's bell.
}  // namespace drive

/// What a sleeping rank wants to be woken for.
namespace interest {
inline constexpr std::uint32_t kEntries =
    1;  ///< New log entries, ready tensors, ranks that come and go.
inline constexpr std::uint32_t kChunks = 2;  ///< Progress of peers inside an entry.
}  // namespace interest

/// One rank of this host.
struct alignas(128) HostRank {
  std::atomic<std::uint32_t> drive;
  std::atomic<std::uint32_t> interest;
  std::atomic<std::int32_t> global_rank;
  std::atomic<std::uint32_t> core;  ///< 1 + where its driver was seen last; 0: nowhere yet.

  // For who asks why this rank keeps others waiting:
  alignas(64) std::atomic<std::uint64_t> last_call;  ///< Submit, or end of a long wait: ns.
  std::atomic<std::uint64_t> waits_for;  ///< Set << 32 | tensor + 1 that a caller waits for; or 0.

  /// Cores that it may run on, a bit each; all 0: unknown. Written before it says that it is there.
  alignas(64) std::array<std::atomic<std::uint64_t>, 16> cores;
};

/// A region's life; all zero while nobody uses it.
struct RegionState {
  futex::Word laid_out;              ///< 0 no, 1 in progress, 2 yes, 3 failed.
  std::atomic<std::uint32_t> users;  ///< Ranks that have it mapped.
};

struct HostBody {
  BoardParams params;

  alignas(128) std::atomic<std::uint32_t> chunk_sleepers;  ///< Ranks asleep inside an entry.
  std::atomic<std::uint32_t> impatient;  ///< Callers asleep in a wait, and callbacks that are due.
  std::atomic<std::uint32_t> gone;       ///< Ranks that have detached.

  std::atomic<std::uint32_t> stall_claimed;  ///< First to set it writes `stall_text`,
  std::array<char, 2048> stall_text;         ///< then poisons: cause stalled. NUL terminated.

  std::array<RegionState, kMostRegions> regions;
};

/// Offsets of everything outside the regions' insides. Pure.
struct HostLayout {
  std::uint64_t body = 0;
  std::uint64_t ranks = 0;  ///< HostRank[local_size]
  std::uint64_t arenas = 0;
  /// From one arena to the next: a page more than an arena, so that tensors at the same place of
  /// two arenas do not differ in high address bits alone. A first-level cache that finds its ways
  /// by a hash of the address (AMD Zen) takes such lines for one another: a sum in place took 1.5
  /// times as long.
  std::uint64_t arena_stride = 0;
  std::uint64_t regions = 0;
  std::uint64_t region_bytes = 0;  ///< Of a set that all ranks of the host are in; every stride.
  std::uint64_t total = 0;

  static HostLayout of(const BoardParams& params);
};

/// Thread: any.
class HostMemory {
 public:
  /// Maps the memfd `fd` (which may be closed afterwards); the first rank lays it out with
  /// `params`. Fails: protocol, version_mismatch, out_of_memory, invalid_argument, peer_lost.
  static Result<std::unique_ptr<HostMemory>> attach(int fd, LocalRank me, Rank global,
                                                    const BoardParams& params);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// As the first rank chose them; local_size is the number of ranks of this host.
  const BoardParams& params() const { return params_; }

  const HostLayout& layout() const { return layout_; }

  int local_size() const { return static_cast<int>(params_.local_size); }

  LocalRank me() const { return me_; }

  /// Of the memfd: tells who maps it.
  std::uint64_t inode() const { return inode_; }

  BoardHeader& header() { return *header_; }

  HostBody& body() { return *body_; }

  RankSlot& slot(LocalRank r) { return header_->slot(r); }

  RankSlot& my_slot() { return header_->slot(me_); }

  HostRank& rank(LocalRank r) { return ranks_[r.index()]; }

  const HostRank& rank(LocalRank r) const { return ranks_[r.index()]; }

  HostRank& my_rank() { return ranks_[me_.index()]; }

  Rank global_rank(LocalRank r) const {
    return Rank{ranks_[r.index()].global_rank.load(std::memory_order_relaxed)};
  }

  /// Leaves why tensors do not complete for all ranks of the host, before it is poisoned for that.
  /// False when somebody else has. Thread: any.
  bool say_stall(std::string_view text);

  // -- Regions ----------------------------------------------------------------------------------

  /// Maps region `index`. Fails: out_of_memory.
  Result<std::byte*> map_region(std::size_t index);
  /// Unmaps it; the last of those who had counted themselves in `users` gives its pages back.
  void unmap_region(std::size_t index, std::byte* base, bool counted);

  /// Lets regions that could not be laid out be tried again, once all ranks have given them up.
  void forget_failed_regions();

  // -- Memory -----------------------------------------------------------------------------------

  /// Backs `bytes` at `offset` of the memfd with memory. Fails: out_of_memory.
  Status allocate(std::uint64_t offset, std::uint64_t bytes);
  /// Gives the pages back.
  void release(std::uint64_t offset, std::uint64_t bytes);

  /// Offset of the calling rank's arena.
  std::uint64_t my_arena() const { return layout_.arenas + me_.index() * layout_.arena_stride; }

  std::byte* at(std::uint64_t offset) { return base_ + offset; }

  /// Offset of `[p, p + bytes)` if it lies in this rank's arena, else 0.
  std::uint64_t offset_in_my_arena(const void* p, std::uint64_t bytes) const;

  /// A peer's arena memory at an offset it wrote; null when it does not lie there.
  std::byte* peer_memory(LocalRank r, std::uint64_t offset, std::uint64_t bytes);

 private:
  HostMemory() = default;
  Status meet_layout(const BoardParams& params);
  Status lay_out(const BoardParams& params);
  Status map();

  LocalRank me_;
  int fd_ = -1;
  std::uint64_t inode_ = 0;
  BoardParams params_;
  HostLayout layout_;
  std::byte* base_ = nullptr;
  BoardHeader* header_ = nullptr;
  HostBody* body_ = nullptr;
  HostRank* ranks_ = nullptr;
};

}  // namespace horo::runtime
