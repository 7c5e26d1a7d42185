// SPDX-License-Identifier: Apache-2.0
// Arena memory that tensors in ordinary memory borrow while they are in flight, on hosts with more
// ranks than cores.
//
// A bucket that moves through the rings needs a turn of every rank three times: to copy in, to
// reduce and to copy out, each time while the peers wait. When the tensors are copied to the arena,
// any rank that runs can do the work; the rank itself is needed only to submit, and to fetch the
// result before it submits again. That is worth the additional copies while the bytes stay in the
// caches. A step of many megabytes keeps its ranks busy in any case, and its copies go to memory
// and back, which takes twice the time of the rings: a rank with much in flight gets no loan.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.hpp"
#include "runtime/bucket/ring_writer.hpp"
#include "runtime/host/arena.hpp"

namespace horo::runtime {

/// Owns the arena memory that is lent, or kept for the next loan. Thread: any, except lend_from.
class LentMemory {
 public:
  /// Begins to lend from `arena`, which outlives all loans. All ranks of the host together lend up
  /// to kMost at a time, and each at most a quarter of its arena: the rest is the user's.
  void lend_from(Arena& arena, int ranks) {
    arena_ = &arena;
    most_ = std::min(kMost / static_cast<std::uint64_t>(ranks), arena.size() / 4);
  }

  /// Null: so many bytes are never lent, or too many are lent already. In the second case nothing
  /// is lent until all is back.
  std::byte* take(std::uint64_t bytes);

  /// Copies a tensor into lent memory.
  void fill(std::byte* memory, const void* from, std::uint64_t bytes);

  /// Takes back the memory that take(bytes) returned.
  void put(std::byte* memory, std::uint64_t bytes);

  static constexpr std::uint64_t kMostOfOne = 4 << 20;
  static constexpr std::uint64_t kMost = 16 << 20;  ///< About the size of a shared cache.

 private:
  static std::size_t class_of(std::uint64_t bytes);
  /// Gives the memory that is kept for tensors of other sizes back to the arena.
  void drop_kept() HORO_REQUIRES(mutex_);

  Arena* arena_ = nullptr;
  std::uint64_t most_ = 0;
  Mutex mutex_;
  std::array<std::vector<std::byte*>, 64> free_ HORO_GUARDED_BY(mutex_);  ///< By power of two.
  std::uint64_t had_ HORO_GUARDED_BY(mutex_) = 0;                         ///< Bytes from the arena.
  std::uint64_t lent_ HORO_GUARDED_BY(mutex_) = 0;                        ///< Bytes.
  bool refuses_ HORO_GUARDED_BY(mutex_) = false;  ///< Nothing is lent until all is back.
  Mutex writing_;
  /// As for a ring: peers have read the memory before.
  RingWriter writer_ HORO_GUARDED_BY(writing_);
};

}  // namespace horo::runtime
