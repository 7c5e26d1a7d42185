// SPDX-License-Identifier: Apache-2.0
// A rank's part of the host's memory that tensors may live in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/result.hpp"
#include "runtime/coordinator/host_memory.hpp"

namespace horo::runtime {

/// Best-fit allocation in this rank's arena; memory is backed before it is handed out, so that a
/// full machine is an error here and not a signal later. Thread: any. Blocks: no, but for the
/// kernel.
class Arena {
 public:
  explicit Arena(std::shared_ptr<HostMemory> host);

  /// Aligned to 64 bytes. Fails: resource_exhausted (arena.size), out_of_memory.
  Result<void*> allocate(std::uint64_t bytes);

  std::uint64_t size() const { return size_; }

  /// It lies in this arena.
  bool holds(const void* memory) const { return host_->offset_in_my_arena(memory, 1) != 0; }

  /// Fails: invalid_argument (not from here, or freed before).
  Status free(void* memory);

 private:
  void give_back(std::uint64_t offset, std::uint64_t bytes);

  const std::shared_ptr<HostMemory> host_;
  const std::uint64_t size_;
  const std::uint64_t first_;  ///< Offset of the arena in the host's memory.
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t>
      used_;  // HORO_GUARDED_BY(mutex_): offset in the arena -> bytes
  std::map<std::uint64_t, std::uint64_t> free_;  // HORO_GUARDED_BY(mutex_)
};

}  // namespace horo::runtime
