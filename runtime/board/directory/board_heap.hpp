// SPDX-License-Identifier: Apache-2.0
// The part of a region that holds names and other things whose size is not known in advance.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// Owns how much of the region's heap is in use. What is taken is never given back; tensor slots
/// keep their places when they change hands. Thread: the holder of the directory's lock.
class BoardHeap {
 public:
  explicit BoardHeap(const SetRegion& region) : region_(region) {}

  /// Takes `bytes` from the share of `use` and returns their offset in the heap: for names a
  /// multiple of kNameUnit, else of kHeapUnit. Fails: resource_exhausted (the share is used up),
  /// out_of_memory.
  Result<std::uint64_t> take(HeapUse use, std::uint64_t bytes);

  /// The first byte of a place; the caller checks that the place lies in the heap.
  std::byte* at(std::uint64_t offset) const {
    return region_.base() + region_.layout().heap + offset;
  }

  std::uint64_t bytes() const { return region_.layout().heap_bytes; }

 private:
  Failure used_up(HeapUse use) const;

  const SetRegion& region_;
};

}  // namespace horo::runtime
