// SPDX-License-Identifier: Apache-2.0
// The memory that the ranks of one host share, whatever process sets they are in: the header with
// bells and poison, the state of each rank's driver, the arenas, and a region for each set.
// One memfd holds it all; docs/design/board.md has the protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/board_header.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/host/board_layout.hpp"
#include "runtime/host/host_layout.hpp"
#include "runtime/host/peer_release.hpp"
#include "runtime/host/waker.hpp"

namespace horo::runtime {

/// Owns the mapping of the host's memory, and the memory that backs it. Thread: any.
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

  /// The memfd's inode: processes that map it can be told by it.
  std::uint64_t inode() const { return inode_; }

  /// The header, with this process's own number of ranks.
  const BoardView& board() const { return board_; }

  HostBody& body() { return *body_; }

  RankSlot& slot(LocalRank r) { return board_->slot(r); }

  HostRank& rank(LocalRank r) const { return ranks_[r.index()]; }

  HostRank& my_rank() { return ranks_[me_.index()]; }

  /// Says whether this rank may access its peers' memory.
  PeerRelease& peer_release() { return *peer_release_; }

  /// Puts this rank to sleep and wakes ranks of the host.
  Waker& waker() { return waker_; }

  Rank global_rank(LocalRank r) const {
    return Rank{ranks_[r.index()].global_rank.load(std::memory_order_relaxed)};
  }

  /// Leaves the reason of a stall for all ranks of the host, before the board is poisoned for it.
  /// False when another rank has done so.
  bool say_stall(std::string_view text);

  // -- Regions ----------------------------------------------------------------------------------

  /// Maps region `index`. Fails: out_of_memory.
  Result<std::byte*> map_region(std::size_t index);
  /// Unmaps a region. The last rank that had counted itself in `users` gives the pages back.
  void unmap_region(std::size_t index, std::byte* base, bool counted);

  /// Allows another try to lay out regions that could not be, once all ranks have given them up.
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

  /// A peer's memory at an offset that the peer wrote; null when that is outside its arena.
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
  BoardView board_;
  HostBody* body_ = nullptr;
  HostRank* ranks_ = nullptr;
  Waker waker_;
  std::optional<PeerRelease> peer_release_;
};

}  // namespace horo::runtime
