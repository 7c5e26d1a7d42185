// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/directory/board_heap.hpp"

#include <algorithm>

namespace horo::runtime {

namespace {

constexpr std::uint64_t kHeapBlock = 128 << 10;  // Backed with memory at a time.

}  // namespace

Failure BoardHeap::used_up(HeapUse use) const {
  const auto bytes = region_.layout().heap_shares[static_cast<std::size_t>(use)];
  switch (use) {
    case HeapUse::names:
      return fail(Errc::resource_exhausted,
                  "the board's {} bytes for names are used up; use shorter names, or raise "
                  "HORO_CACHE_CAPACITY",
                  bytes);
    case HeapUse::records:
    case HeapUse::payloads:
      break;
    case HeapUse::splits:
      return fail(Errc::resource_exhausted,
                  "the board's {} bytes for the splits of alltoalls are used up; use fewer names "
                  "for alltoalls, or raise HORO_CACHE_CAPACITY",
                  bytes);
  }
  return fail(Errc::resource_exhausted,
              "the board's {} bytes for {} are used up; raise HORO_CACHE_CAPACITY", bytes,
              use == HeapUse::records ? "groups and alltoalls" : "small tensors");
}

Result<std::uint64_t> BoardHeap::take(HeapUse use, std::uint64_t bytes) {
  auto& body = region_.body();
  const auto& layout = region_.layout();
  const auto unit = use == HeapUse::names ? kNameUnit : kHeapUnit;
  const auto begin = (body.heap_used + unit - 1) / unit * unit;
  const auto end = begin + (bytes + unit - 1) / unit * unit;
  // Bytes that are skipped to align a place count for its use: the shares add up to the heap.
  auto& used = body.heap_shares_used[static_cast<std::size_t>(use)];
  const auto share = layout.heap_shares[static_cast<std::size_t>(use)];
  const auto more = end - body.heap_used;
  if (end > layout.heap_bytes || used > share || more > share - used) return used_up(use);
  while (end > body.heap_allocated) {
    const auto block = std::min(kHeapBlock, layout.heap_bytes - body.heap_allocated);
    HORO_TRY_STATUS(region_.allocate(layout.heap + body.heap_allocated, block));
    body.heap_allocated += block;
  }
  body.heap_used = end;
  used += more;
  return begin;
}

}  // namespace horo::runtime
