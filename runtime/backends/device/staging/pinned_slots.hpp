// SPDX-License-Identifier: Apache-2.0
// Host memory through which tensors of a device pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device/open_device.hpp"

namespace horo::runtime {

/// A bounded number of slots, whose memory grows on demand. It is pinned, or ordinary memory where
/// the device has no more, which is slower. Thread: owner.
class PinnedSlots {
 public:
  static constexpr std::size_t kMost = 8;

  struct Slot {
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0;
    OpenDevice* gpu = nullptr;  ///< Null: ordinary memory.
    bool taken = false;
  };

  PinnedSlots() = default;
  ~PinnedSlots();
  PinnedSlots(const PinnedSlots&) = delete;
  PinnedSlots& operator=(const PinnedSlots&) = delete;

  /// A slot of at least `bytes`; null: none is free. `gpu` may be null: then nothing is copied from
  /// or to a device. Fails: out_of_memory.
  Result<Slot*> take(OpenDevice* gpu, std::uint64_t bytes);

  static void put(Slot& slot) { slot.taken = false; }

  /// The device may use the slot's memory for ever: it is never freed. The slot gets other memory.
  static void abandon(Slot& slot) {
    slot.memory = nullptr;
    slot.bytes = 0;
    slot.taken = false;
  }

 private:
  static Status grow(Slot& slot, OpenDevice* gpu, std::uint64_t bytes);
  static void release(Slot& slot);

  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace horo::runtime
