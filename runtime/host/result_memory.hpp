// SPDX-License-Identifier: Apache-2.0
// Memory for results that operations own. Large blocks are kept for the next result, because a
// fresh block has a page fault every 4 KiB, which takes longer than moving the bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.hpp"

namespace horo::runtime {

class ResultCache;

/// Gives a block back to its cache.
struct ResultReturn {
  ResultCache* cache = nullptr;
  std::uint64_t bytes = 0;  ///< Size of the block.

  void operator()(void* block) const;
};

using ResultMemory = std::unique_ptr<void, ResultReturn>;

/// Owns the blocks that wait for the next result. It outlives all memory that it handed out.
/// Thread: any.
class ResultCache {
 public:
  ResultCache() = default;
  ~ResultCache();
  ResultCache(const ResultCache&) = delete;
  ResultCache& operator=(const ResultCache&) = delete;

  /// At least `bytes`, aligned to 64, with undefined contents. Null when there is no memory.
  ResultMemory take(std::uint64_t bytes);

 private:
  friend struct ResultReturn;

  struct Block {
    void* memory;
    std::uint64_t bytes;
  };

  static constexpr std::size_t kMostBlocks = 4;
  static constexpr std::uint64_t kMostBytes = 256 << 20;
  static constexpr std::uint64_t kHugePage = 2 << 20;

  void put(void* memory, std::uint64_t bytes);

  Mutex mutex_;
  std::vector<Block> kept_ HORO_GUARDED_BY(mutex_);  ///< Oldest first.
};

}  // namespace horo::runtime
