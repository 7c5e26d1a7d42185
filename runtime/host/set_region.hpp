// SPDX-License-Identifier: Apache-2.0
// The region of one process set in its host's memory: where its tables lie, and which ranks of this
// host share them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/board_header.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/host/board_layout.hpp"
#include "runtime/host/host_memory.hpp"

namespace horo::runtime {

/// The members of a set that run on this host, ascending; `LocalRank` values of the host.
using Members = std::vector<LocalRank>;

/// Which tables a region has.
enum class RegionUse : std::uint8_t {
  whole,      ///< A set on this host: agreement, and rings for the data.
  agreement,  ///< A set with members on other hosts: no rings, a backend between hosts moves data.
  rings,      ///< One step, inside this host, of such a set's backend: rings, and no agreement.
};

/// Where the tables of a region begin in this process.
struct RegionTables {
  BoardBody* body = nullptr;
  RankArea* ranks = nullptr;
  TensorSlot* tensors = nullptr;
  MarkGroup* mark_groups = nullptr;
  RankTensor* rank_tensors = nullptr;
  Signature* signatures = nullptr;
  std::atomic<std::uint32_t>* ready = nullptr;
  PendingSlot* pending = nullptr;
  LogSlot* log = nullptr;
  std::uint64_t* words = nullptr;
  std::uint32_t* buckets = nullptr;
};

/// Owns the mapping of one region. Like a span, a const SetRegion gives access to memory that can
/// be written. A `member` is a number from 0, in the order of the members' ranks. Thread: any.
class SetRegion {
 public:
  /// Maps region `index`. The calling rank is one of `members`, or the host's first rank, which
  /// leads a set with members on other hosts. The first rank to attach lays the region out.
  /// Blocks: while another rank does that. Fails: out_of_memory, peer_lost.
  static Result<std::unique_ptr<SetRegion>> attach(HostMemory& host, std::size_t index,
                                                   Members members,
                                                   RegionUse use = RegionUse::whole);
  ~SetRegion();
  SetRegion(const SetRegion&) = delete;
  SetRegion& operator=(const SetRegion&) = delete;

  /// As the host's, except that local_size is the number of members.
  const BoardParams& params() const { return params_; }

  const BoardLayout& layout() const { return layout_; }

  const RegionTables& tables() const { return tables_; }

  RegionUse use() const { return use_; }

  HostMemory& host() const { return host_; }

  BoardHeader& header() const { return *host_.board(); }

  /// The region's first byte; the layout's offsets count from here.
  std::byte* base() const { return base_; }

  /// Backs `bytes` at `offset` of the region with memory. Fails: out_of_memory.
  Status allocate(std::uint64_t offset, std::uint64_t bytes) const;

  // -- Members ----------------------------------------------------------------------------------

  int local_size() const { return static_cast<int>(params_.local_size); }

  /// The calling rank; -1 where it is no member and only leads the set.
  int me() const { return me_; }

  /// The member that has this rank of the job; -1: none.
  int member_of(Rank rank) const;

  LocalRank local_rank(int member) const { return members_[static_cast<std::size_t>(member)]; }

  Rank global_rank(int member) const { return host_.global_rank(local_rank(member)); }

  RankSlot& rank_slot(int member) const { return host_.slot(local_rank(member)); }

  /// Process, drive word and calls of a member.
  HostRank& host_rank(int member) const { return host_.rank(local_rank(member)); }

  RankArea& area(int member) const { return tables_.ranks[member]; }

  /// How many log entries every attached member has done; at most `tail`.
  std::uint64_t least_cursor(std::uint64_t tail) const;

  // -- Tensors ----------------------------------------------------------------------------------

  BoardBody& body() const { return *tables_.body; }

  TensorSlot& tensor(TensorId id) const { return tables_.tensors[id.value()]; }

  RankTensor& rank_tensor(TensorId id, int member) const {
    return tables_.rank_tensors[static_cast<std::size_t>(member) * params_.capacity + id.index()];
  }

  /// Slots of tensors that have ever been in use; a value that another process wrote is bounded.
  std::uint32_t tensor_count() const;

  /// "?" where the board's content makes no sense.
  std::string_view tensor_name(TensorId id) const;

 private:
  SetRegion(HostMemory& host, std::size_t index, Members members, RegionUse use);
  Status lay_out_once();
  /// The kernel takes memory from the node of the thread that asks for it first: each rank asks for
  /// the ring that it will write.
  Status back_own_ring() const;
  void find_tables();

  // Constant after attach.
  HostMemory& host_;
  const std::size_t index_;
  const Members members_;
  int me_ = -1;
  const RegionUse use_;
  bool counted_ = false;
  BoardParams params_;
  BoardLayout layout_;
  std::byte* base_ = nullptr;
  RegionTables tables_;
};

}  // namespace horo::runtime
