// SPDX-License-Identifier: Apache-2.0
// The part of the host's memory in which one rank's tensors may lie.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "runtime/host/host_memory.hpp"

namespace horo::runtime {

/// Allocates from this rank's arena, best fit first. Memory is backed before it is handed out, so
/// that a full machine is an error here and not a signal later. Thread: any. Blocks: only in the
/// kernel.
class Arena {
 public:
  explicit Arena(std::shared_ptr<HostMemory> host);

  /// Aligned to 64 bytes. Fails: resource_exhausted (arena.size), out_of_memory.
  Result<void*> allocate(std::uint64_t bytes);

  std::uint64_t size() const { return size_; }

  /// `memory` lies in this arena.
  bool holds(const void* memory) const { return host_->offset_in_my_arena(memory, 1) != 0; }

  /// Fails: invalid_argument (not from this arena, or freed before).
  Status free(void* memory);

 private:
  void give_back(std::uint64_t offset, std::uint64_t bytes);

  const std::shared_ptr<HostMemory> host_;
  const std::uint64_t size_;
  const std::uint64_t first_;  ///< Offset of the arena in the host's memory.
  Mutex mutex_;
  /// Offset in the arena -> bytes; the same for `free_`.
  std::map<std::uint64_t, std::uint64_t> used_ HORO_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::uint64_t> free_ HORO_GUARDED_BY(mutex_);
};

}  // namespace horo::runtime
