// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/directory/slot_memory.hpp"

#include <algorithm>
#include <bit>

namespace horo::runtime {

std::byte* SlotMemory::payload(TensorId id, int member, std::uint64_t generation,
                               std::uint64_t bytes) const {
  const auto& slot = region_.tensor(id);
  const std::uint64_t capacity = slot.inline_capacity.load(std::memory_order_acquire);
  if (bytes > capacity) return nullptr;
  const auto place =
      slot.inline_place.load(std::memory_order_relaxed) * kHeapUnit +
      ((generation & 1U) * region_.params().local_size + static_cast<std::uint64_t>(member)) *
          capacity;
  if (place + capacity > heap_.bytes()) return nullptr;
  return heap_.at(place);
}

std::uint64_t SlotMemory::splits_bytes() const {
  const std::uint64_t n = region_.params().local_size;
  return 2 * n * n * sizeof(std::uint64_t);
}

std::uint64_t* SlotMemory::splits(TensorId id, int member, std::uint64_t generation) const {
  const auto& layout = region_.layout();
  const auto* const aside = this->aside(id);
  if (aside == nullptr) return nullptr;
  const auto offset = aside->splits_offset.load(std::memory_order_acquire);
  if (offset < layout.heap || offset > layout.heap + layout.heap_bytes - splits_bytes())
    return nullptr;
  const std::uint64_t n = region_.params().local_size;
  return reinterpret_cast<std::uint64_t*>(region_.base() + offset) +
         ((generation & 1U) * n + static_cast<std::uint64_t>(member)) * n;
}

TensorAside* SlotMemory::aside(TensorId id) const {
  const auto place = region_.tensor(id).aside_place.load(std::memory_order_acquire) * kHeapUnit;
  if (place == 0 || place > heap_.bytes() - sizeof(TensorAside)) return nullptr;
  return reinterpret_cast<TensorAside*>(heap_.at(place));
}

void SlotMemory::provide_payloads(TensorSlot& slot, const Signature& signature) {
  const auto bytes = signature.bytes();
  if (signature.kind == Kind::barrier || bytes > region_.layout().inline_bytes) return;
  // The name that had the slot before may have left places that are large enough.
  if (bytes <= slot.inline_capacity.load(std::memory_order_relaxed)) return;
  // Room to spare, since ranks' parts may differ in size.
  const auto least = first_extent_is_free(signature.kind) ? std::uint64_t{1024} : std::uint64_t{64};
  const auto capacity =
      std::min(std::max(least, std::bit_ceil(bytes)), region_.layout().inline_bytes);
  const auto place = heap_.take(HeapUse::payloads, 2 * region_.params().local_size * capacity);
  if (!place) return;  // Without a place the tensor's bytes move through the rings.
  slot.inline_place.store(static_cast<std::uint32_t>(*place / kHeapUnit),
                          std::memory_order_relaxed);
  slot.inline_capacity.store(static_cast<std::uint16_t>(capacity), std::memory_order_release);
}

Status SlotMemory::provide_splits(TensorId id, const Signature& signature) {
  if (signature.kind != Kind::alltoall) return {};
  HORO_TRY(auto* const aside, provide_aside(id));
  if (aside->splits_offset.load(std::memory_order_relaxed) != 0) return {};
  HORO_TRY(const auto place, heap_.take(HeapUse::splits, splits_bytes()));
  aside->splits_offset.store(region_.layout().heap + place, std::memory_order_release);
  return {};
}

Result<TensorAside*> SlotMemory::provide_aside(TensorId id) {
  auto& slot = region_.tensor(id);
  if (slot.aside_place.load(std::memory_order_relaxed) == 0) {
    HORO_TRY(const auto place, heap_.take(HeapUse::records, sizeof(TensorAside)));
    slot.aside_place.store(static_cast<std::uint32_t>(place / kHeapUnit),
                           std::memory_order_release);
  }
  auto* const aside = this->aside(id);
  if (aside == nullptr)
    return fail(Errc::protocol, "the board has no place for the extras of tensor {}", id);
  return aside;
}

}  // namespace horo::runtime
