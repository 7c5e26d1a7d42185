// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/lent_memory.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/kernels/kernels.hpp"

namespace horo::runtime {

namespace {

constexpr std::uint64_t kPiece = 128 << 10;  // Bytes that the writer measures at a time.

}  // namespace

std::size_t LentMemory::class_of(std::uint64_t bytes) {
  return static_cast<std::size_t>(std::bit_width(bytes - 1));
}

void LentMemory::drop_kept() {
  for (std::size_t bits = 0; bits < free_.size(); ++bits) {
    for (auto* const memory : std::exchange(free_[bits], {})) {
      if (arena_->free(memory)) had_ -= std::uint64_t{1} << bits;
    }
  }
}

std::byte* LentMemory::take(std::uint64_t bytes) {
  if (arena_ == nullptr || bytes == 0 || bytes > kMostOfOne) return nullptr;
  const auto size = std::uint64_t{1} << class_of(bytes);
  const MutexLock lock(mutex_);
  if (lent_ == 0) refuses_ = false;
  if (lent_ + size > most_) refuses_ = true;
  if (refuses_) return nullptr;
  auto& free = free_[class_of(bytes)];
  if (free.empty()) {
    if (had_ + size > most_) drop_kept();
    auto memory = arena_->allocate(size);
    if (!memory) return nullptr;  // The tensor moves through the rings.
    had_ += size;
    free.push_back(static_cast<std::byte*>(*memory));
  }
  lent_ += size;
  auto* const memory = free.back();
  free.pop_back();
  return memory;
}

void LentMemory::fill(std::byte* memory, const void* from, std::uint64_t bytes) {
  if (!writing_.try_lock()) return kernels::copy_kernel()(memory, from, bytes);
  for (std::uint64_t done = 0; done < bytes; done += kPiece) {
    writer_.copy(memory + done, static_cast<const std::byte*>(from) + done,
                 std::min(kPiece, bytes - done));
  }
  writing_.unlock();
}

void LentMemory::put(std::byte* memory, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  free_[class_of(bytes)].push_back(memory);
  lent_ -= std::uint64_t{1} << class_of(bytes);
}

}  // namespace horo::runtime
