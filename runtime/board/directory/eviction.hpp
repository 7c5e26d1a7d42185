// SPDX-License-Identifier: Apache-2.0
// Takes slots away from names when all slots are taken.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/board/directory/groups.hpp"
#include "runtime/board/directory/name_table.hpp"
#include "runtime/board/directory/slot_memory.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// Chooses which name loses its slot: about the one that was least recently in an entry, and never
/// one that is in use. All ranks of the host use the same table, so all see the same choice.
/// Thread: the holder of the directory's lock.
class Eviction {
 public:
  Eviction(const SetRegion& region, NameTable& names, const SlotMemory& memory, Groups& groups)
      : region_(region), names_(names), memory_(memory), groups_(groups) {}

  /// A slot whose name has been removed; none: every name is in use.
  std::optional<TensorId> free_slot();

 private:
  /// A rank has it pinned or marked, or may still read it for an entry that it has not passed.
  bool is_in_use(TensorId id, std::uint64_t least_cursor) const;
  bool retire(TensorId id, std::uint64_t least_cursor);
  std::optional<TensorId> retire_next(std::uint64_t least_cursor);

  const SetRegion& region_;
  NameTable& names_;
  const SlotMemory& memory_;
  Groups& groups_;
  /// Candidates with their last entries; the least recent one is the last element.
  std::vector<std::pair<std::uint64_t, TensorId>> candidates_;
};

}  // namespace horo::runtime
