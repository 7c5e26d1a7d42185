// SPDX-License-Identifier: Apache-2.0
// Groups: tensors that become ready together.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/board/directory/slot_memory.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// A group as users name it; an empty name stands for no group.
struct GroupName {
  std::string_view name;
  std::uint32_t size = 0;  ///< Tensors in the group.

  bool exists() const { return !name.empty() && size >= 2; }
};

/// Owns which group each rank's tensors are in. A group has a tensor slot of its own in the
/// directory; groups of one name and different sizes are different groups. Thread: any, except
/// move().
class Groups {
 public:
  Groups(const SetRegion& region, const SlotMemory& memory) : region_(region), memory_(memory) {}

  /// The name of a group's slot in the directory. No tensor's name begins like it.
  static std::string slot_name(const GroupName& group);
  static bool is_slot_name(std::string_view name);

  /// The group that a member has declared the tensor in.
  GroupRef of(TensorId id, int member) const;

  /// The name under which the group was declared; empty: there is no such group.
  std::string_view name(GroupRef group) const;

  /// The group's record, by the id + 1 of its slot; null: there is no such group.
  TensorAside* record(std::uint32_t group) const {
    return group == 0 || group > region_.params().capacity ? nullptr
                                                           : memory_.aside(TensorId{group - 1});
  }

  /// A complete tensor of this group waits for the others.
  bool is_waiting(GroupRef group) const {
    const auto* const waiting = record(group.slot);
    return waiting != nullptr && waiting->parked.load(std::memory_order_acquire) != 0;
  }

  /// Moves a rank's tensor from the group it is in to `group`, and counts both. `member` is the
  /// rank's row, or a place that keeps a group while it is used. Thread: the holder of the
  /// directory's lock.
  void move(std::atomic<std::uint32_t>& member, std::uint32_t group);

 private:
  const SetRegion& region_;
  const SlotMemory& memory_;
};

}  // namespace horo::runtime
