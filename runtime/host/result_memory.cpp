// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/result_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <sys/mman.h>

namespace horo::runtime {

namespace {

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t unit) {
  return (std::max<std::uint64_t>(bytes, 1) + unit - 1) / unit * unit;
}

}  // namespace

void ResultReturn::operator()(void* block) const {
  if (bytes < ResultCache::kHugePage) {
    std::free(block);
  } else {
    cache->put(block, bytes);
  }
}

ResultCache::~ResultCache() {
  const MutexLock lock(mutex_);
  for (const auto& block : kept_) std::free(block.memory);
}

ResultMemory ResultCache::take(std::uint64_t bytes) {
  if (bytes < kHugePage) {
    const auto size = rounded(bytes, 64);
    return {std::aligned_alloc(64, size), ResultReturn{.cache = this, .bytes = 0}};
  }
  const auto size = rounded(bytes, kHugePage);
  {
    const MutexLock lock(mutex_);
    auto best = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      if (it->bytes >= size && it->bytes <= 2 * size &&
          (best == kept_.end() || it->bytes < best->bytes))
        best = it;
    }
    if (best != kept_.end()) {
      const auto block = *best;
      kept_.erase(best);
      return {block.memory, ResultReturn{.cache = this, .bytes = block.bytes}};
    }
  }
  void* memory = std::aligned_alloc(kHugePage, size);
  if (memory != nullptr) madvise(memory, size, MADV_HUGEPAGE);
  return {memory, ResultReturn{.cache = this, .bytes = size}};
}

void ResultCache::put(void* memory, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  kept_.push_back({memory, bytes});
  std::uint64_t sum = 0;
  for (const auto& block : kept_) sum += block.bytes;
  while (kept_.size() > kMostBlocks || sum > kMostBytes) {
    sum -= kept_.front().bytes;
    std::free(kept_.front().memory);
    kept_.erase(kept_.begin());
  }
}

}  // namespace horo::runtime
