// SPDX-License-Identifier: Apache-2.0
// Memory of results that operations own. Large blocks are kept for the next result: a fresh one
// costs a page fault every 4 KiB, more than moving the bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace horo::runtime {

class ResultCache;

/// Gives a block back to where it came from.
struct ResultReturn {
  ResultCache* cache = nullptr;
  std::uint64_t bytes = 0;  ///< Of the block.

  void operator()(void* block) const;
};

using ResultMemory = std::unique_ptr<void, ResultReturn>;

/// Thread: any. Must outlive what it handed out.
class ResultCache {
 public:
  ResultCache() = default;
  ~ResultCache();
  ResultCache(const ResultCache&) = delete;
  ResultCache& operator=(const ResultCache&) = delete;

  /// At least `bytes`, aligned to 64; contents are undefined. Null when there is no memory.
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

  std::mutex mutex_;
  std::vector<Block> kept_;  // HORO_GUARDED_BY(mutex_): oldest first.
};

}  // namespace horo::runtime
