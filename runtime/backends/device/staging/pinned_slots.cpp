// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/staging/pinned_slots.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "base/log.hpp"

namespace horo::runtime {

namespace {

constexpr std::uint64_t kLeastSlot = 4096;

}  // namespace

PinnedSlots::~PinnedSlots() {
  for (const auto& slot : slots_) release(*slot);
}

void PinnedSlots::release(Slot& slot) {
  if (slot.memory == nullptr) return;
  if (slot.gpu != nullptr) {
    slot.gpu->device().free_host(slot.memory);
  } else {
    std::free(slot.memory);
  }
  slot.memory = nullptr;
  slot.bytes = 0;
}

Status PinnedSlots::grow(Slot& slot, OpenDevice* gpu, std::uint64_t bytes) {
  const auto rounded = std::bit_ceil(std::max(bytes, kLeastSlot));
  release(slot);
  slot.gpu = gpu;
  if (gpu != nullptr) {
    const auto pinned = gpu->device().allocate_host(rounded);
    if (pinned) {
      slot.memory = static_cast<std::byte*>(*pinned);
      slot.bytes = rounded;
      return {};
    }
    log::warn("runtime", "{}; {} bytes of ordinary memory take its place, which is slower",
              gpu->named(pinned.error()).message, rounded);
    slot.gpu = nullptr;
  }
  slot.memory = static_cast<std::byte*>(std::aligned_alloc(kLeastSlot, rounded));
  slot.bytes = slot.memory == nullptr ? 0 : rounded;
  if (slot.memory != nullptr) return {};
  return fail(Errc::out_of_memory, "{} bytes of staging memory cannot be allocated", rounded);
}

Result<PinnedSlots::Slot*> PinnedSlots::take(OpenDevice* gpu, std::uint64_t bytes) {
  Slot* best = nullptr;
  for (const auto& slot : slots_) {
    if (slot->taken) continue;
    const bool fits = slot->bytes >= bytes;
    const bool best_fits = best != nullptr && best->bytes >= bytes;
    if (best == nullptr || (fits && (!best_fits || slot->bytes < best->bytes))) best = slot.get();
  }
  if ((best == nullptr || best->bytes < bytes) && slots_.size() < kMost)
    best = slots_.emplace_back(std::make_unique<Slot>()).get();
  if (best == nullptr) return best;
  if (best->bytes < bytes) HORO_TRY_STATUS(grow(*best, gpu, bytes));
  best->taken = true;
  return best;
}

}  // namespace horo::runtime
