// SPDX-License-Identifier: Apache-2.0
// Arena memory that tensors from ordinary memory borrow while they are in flight, on hosts with
// more ranks than cores.
//
// Through the rings every rank has to come to run three times for one bucket: to copy in, to reduce
// and to copy out, each time with its peers waiting for it. From a copy in the arena whoever runs
// does the work; the rank itself is needed to submit, and to fetch the result before it submits
// again. That is worth the bytes that are copied more while they stay in the caches. A step of many
// megabytes keeps its ranks busy anyway, and pays for each byte that goes to memory and back (twice
// the time of the rings): who has much in flight is lent nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/backends/shm/ring_writer.hpp"

namespace horo::runtime {

/// Thread: any, but for lend_from.
class LentMemory {
 public:
  /// Until then nothing is lent. `arena` lives as long as there is anything to lend; all ranks of
  /// the host together lend up to kMost at a time, and none of them more than a quarter of its
  /// arena, which is the user's.
  void lend_from(Arena& arena, int ranks) {
    arena_ = &arena;
    most_ = std::min(kMost / static_cast<std::uint64_t>(ranks), arena.size() / 4);
  }

  /// Null: none for so many bytes, or too much is lent already; then, until all is back, nothing.
  std::byte* take(std::uint64_t bytes);

  /// Copies a tensor into what was lent.
  void fill(std::byte* memory, const void* from, std::uint64_t bytes);

  /// What take(bytes) gave.
  void put(std::byte* memory, std::uint64_t bytes);

  static constexpr std::uint64_t kMostOfOne = 4 << 20;
  static constexpr std::uint64_t kMost = 16 << 20;  // What a shared cache holds.

 private:
  static std::size_t class_of(std::uint64_t bytes);
  /// Gives the arena back what is kept for tensors of other sizes.
  void drop_kept();

  Arena* arena_ = nullptr;
  std::uint64_t most_ = 0;
  std::mutex mutex_;
  std::array<std::vector<std::byte*>, 64> free_;  // HORO_GUARDED_BY(mutex_): by power of two
  std::uint64_t had_ = 0;                         // HORO_GUARDED_BY(mutex_): from the arena
  std::uint64_t lent_ = 0;                        // HORO_GUARDED_BY(mutex_)
  bool refuses_ = false;                          // HORO_GUARDED_BY(mutex_): until all is back
  std::mutex writing_;
  RingWriter writer_;  // HORO_GUARDED_BY(writing_): like a ring, peers have read it before
};

}  // namespace horo::runtime
