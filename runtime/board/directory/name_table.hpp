// SPDX-License-Identifier: Apache-2.0
// The names of a set's tensors and where each is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "runtime/board/directory/board_heap.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

inline constexpr std::size_t kLongestName = 4096;

/// Owns the hash table from names to tensor slots, and the names' texts. One table serves all ranks
/// of the host. Thread: the holder of the directory's lock, except find_unlocked().
class NameTable {
 public:
  NameTable(const SetRegion& region, BoardHeap& heap) : region_(region), heap_(heap) {}

  static std::uint32_t hash_of(std::string_view name);

  /// The slot of `name`, if it has one. Fails: protocol.
  Result<std::optional<TensorId>> find(std::string_view name, std::uint32_t hash) const;

  /// The same without the lock, which a stopped rank could hold: compares all names. Thread: any.
  std::optional<TensorId> find_unlocked(std::string_view name) const;

  /// Writes the name's text into the slot. Fails: resource_exhausted, out_of_memory.
  Status store(TensorSlot& slot, std::string_view name, std::uint32_t hash);

  /// Makes the slot findable by the name that it holds.
  void insert(TensorId id);
  void erase(TensorId id);

 private:
  std::uint32_t mask() const { return 2 * region_.params().capacity - 1; }

  const SetRegion& region_;
  BoardHeap& heap_;
};

}  // namespace horo::runtime
