// SPDX-License-Identifier: Apache-2.0
// Which members of a set have submitted which tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/board/directory/directory.hpp"
#include "runtime/board/directory/mark_counts.hpp"
#include "runtime/board/ready_list.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// The facts about this rank's submission that a mark passes to the peers.
struct Contribution {
  std::uint64_t in_offset = 0;  ///< From the start of the host's memory; 0: not in an arena.
  std::uint64_t out_offset = 0;
  bool direct = false;      ///< The buffers that peers read and write lie in the arena.
  bool in_line = false;     ///< The payload lies in the slot's own memory.
  bool changed = false;     ///< The signature is new, or not the agreed one.
  std::uint64_t ticks = 0;  ///< When it was submitted, by timeline/record/ticks.hpp.
};

/// Says what became of a mark that its rank wanted back.
enum class TakenBack : std::uint8_t {
  yes,
  no,         ///< The tensor is complete or was not marked.
  completed,  ///< Nor this: the attempt itself has made the tensor ready.
};

/// Owns the marks of all tensors and the masks of joined ranks. The mark that completes a tensor
/// puts it on the ready list. A tensor is complete when each member has marked it or has joined.
/// Thread: any, except begin_generation() and forget_joins().
class Marks {
 public:
  Marks(const SetRegion& region, const Directory& directory, ReadyList& ready)
      : region_(region), directory_(directory), ready_(ready), counts_(region) {}

  /// Marks the tensor for this rank; true when this mark completed it. At most once per generation.
  bool mark(TensorId id, const Contribution& contribution);

  /// Takes this rank's mark back.
  TakenBack unmark(TensorId id);

  /// Marks the set's join tensor. From now on, until all members have joined, tensors become ready
  /// without this rank's mark. True when any tensor became ready.
  bool join(TensorId id);

  /// Makes the complete tensors of this tensor's group ready; they no longer wait for the rest.
  void dissolve_group(TensorId id);

  bool has_marked(TensorId id, int member) const { return counts_.has(id, member); }

  /// Some member has marked the tensor.
  bool any(TensorId id) const { return counts_.any(id); }

  bool has_joined(int member) const {
    const auto m = static_cast<std::size_t>(member);
    return (region_.body().joined[m / 64].load(std::memory_order_relaxed) >> (m % 64) & 1U) != 0;
  }

  /// The member that submitted the tensor last, and how many ticks before `now`. For complete
  /// tensors that are in no entry.
  struct LastMark {
    int member = 0;
    std::uint64_t ticks_ago = 0;
  };

  LastMark last_marked(TensorId id, std::uint64_t now) const;

  /// The lowest member that has marked the tensor; the last member when none has.
  int first_marked(TensorId id) const;

  /// All members that have marked the tensor have declared it in the same group.
  bool same_group(TensorId id) const;

  /// Some members have not marked the tensor because they have joined. For complete tensors.
  bool is_partial(TensorId id) const {
    return arrivals::marks(counted(id)) < region_.params().local_size;
  }

  /// A member's signature is new, or not the agreed one.
  bool is_changed(TensorId id) const { return arrivals::changed(counted(id)) != 0; }

  /// The marks of this generation, see `arrivals`. For complete tensors.
  std::uint64_t counted(TensorId id) const {
    return region_.tensor(id).arrivals.load(std::memory_order_acquire);
  }

  /// Entries that the tensor was in. Its parity tells one submission's payload places from the
  /// next one's.
  std::uint32_t generation(TensorId id) const {
    return region_.tensor(id).generation.load(std::memory_order_acquire);
  }

  // -- By the one thread that appends to the log ------------------------------------------------

  /// Clears the tensor's marks: it is in the log entry with number `entry`, counted from 1.
  void begin_generation(TensorId id, std::uint64_t entry);

  /// All members have joined and go on.
  void forget_joins();

 private:
  bool complete_without_joined(TensorId id);
  bool everyone_else_has_joined(TensorId id, std::uint32_t marks) const;
  void make_ready(TensorId id, bool changed);
  void push_parked(std::uint32_t last);
  void push(TensorId id);

  const SetRegion& region_;
  const Directory& directory_;
  ReadyList& ready_;
  const MarkCounts counts_;
};

}  // namespace horo::runtime
