// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace horo::runtime {

/// Where the offsets of a schedule are in memory: in one piece, or input and result in the tensor
/// itself and the areas behind them in staging memory.
class ScheduleMemory {
 public:
  /// NOLINTNEXTLINE(google-explicit-constructor): one piece of memory is the usual case.
  ScheduleMemory(std::byte* all) : staging_(all) {}

  ScheduleMemory(std::byte* tensor, std::uint64_t bytes, std::byte* staging)
      : tensor_(tensor), bytes_(bytes), staging_(staging) {}

  /// Null where there is no memory, as in simulations.
  std::byte* at(std::uint64_t offset) const {
    if (offset < bytes_) return tensor_ + offset;
    return staging_ == nullptr ? nullptr : staging_ + offset;
  }

 private:
  std::byte* tensor_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::byte* staging_ = nullptr;
};

}  // namespace horo::runtime
