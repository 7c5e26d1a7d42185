// SPDX-License-Identifier: Apache-2.0
// A caching allocator as torch has one for CUDA: memory of a tensor that dies is used again at once
// by work of the stream on which it was allocated, and behind work of other streams only if someone
// has called record(). It never gives memory back, so each wrong use lands in memory of another
// tensor, where the software device finds that the two are not ordered.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace horo::torch_device {

/// Thread: any.
class CachingAllocator {
 public:
  static CachingAllocator& instance();

  /// Memory of the device for the calling thread's current stream there.
  void* allocate(int device, std::size_t bytes);
  void free(void* memory);

  /// The memory is not used again before the work that is on `stream` when it is freed is done.
  void record(void* memory, void* stream);

 private:
  struct Block {
    int device = 0;
    void* stream = nullptr;  ///< For whose work it is used again.
    std::size_t bytes = 0;
    std::vector<void*> others;  ///< Streams of record().
  };

  /// A freed block that other streams may still use, until all the events are there.
  struct Waiting {
    void* memory = nullptr;
    Block block;
    std::vector<void*> events;
  };

  using Key = std::tuple<int, void*, std::size_t>;

  void sweep();
  void keep(void* memory, const Block& block);
  void* cut(int device, void* stream, std::size_t bytes);

  std::mutex mutex_;
  std::map<void*, Block> used_;
  std::map<Key, std::vector<void*>> idle_;
  std::vector<Waiting> waiting_;
  std::map<std::pair<int, void*>, std::pair<char*, std::size_t>>
      segments_;  ///< The unused rest of each.
};

}  // namespace horo::torch_device
