// SPDX-License-Identifier: Apache-2.0
// Memory of tensor slots in the region's heap: payloads of small tensors, splits of alltoalls, and
// the records of groups.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "runtime/board/directory/board_heap.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// Owns the heap places that belong to tensor slots. A place stays its slot's when the slot gets
/// another name, and is never moved: a peer may be writing to it. Memory is provided under the
/// directory's lock; the places are used by any thread that has the tensor pinned.
class SlotMemory {
 public:
  SlotMemory(const SetRegion& region, BoardHeap& heap) : region_(region), heap_(heap) {}

  /// Where a member's payload of the given generation goes; null when the slot has no place for
  /// `bytes`.
  std::byte* payload(TensorId id, int member, std::uint64_t generation, std::uint64_t bytes) const;

  /// How many rows an alltoall's member sends to each member in the given generation; null when the
  /// tensor was never declared as an alltoall.
  std::uint64_t* splits(TensorId id, int member, std::uint64_t generation) const;

  /// Null: the slot has none.
  TensorAside* aside(TensorId id) const;

  // By the holder of the directory's lock.

  /// Provides payload places where the tensor is small; does nothing when the heap is full.
  void provide_payloads(TensorSlot& slot, const Signature& signature);
  /// Provides a place for the splits of an alltoall. Fails: resource_exhausted, out_of_memory.
  Status provide_splits(TensorId id, const Signature& signature);
  Result<TensorAside*> provide_aside(TensorId id);

 private:
  std::uint64_t splits_bytes() const;

  const SetRegion& region_;
  BoardHeap& heap_;
};

}  // namespace horo::runtime
