// SPDX-License-Identifier: Apache-2.0
// The arenas of all sessions of this process. Memory that the program keeps longer than its session
// stays valid until it is freed: no memory of a later session overlaps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "runtime/host/arena.hpp"

namespace horo::runtime {

/// Owns which arenas are in use. Thread: any.
class Arenas {
 public:
  /// Adds the arena of a session that begins: from now on memory comes from there. Arenas of
  /// earlier sessions stay, with the memory of their host, while any of their memory is in use.
  void enter(std::shared_ptr<Arena> arena);

  /// Fails: not_initialized, and as Arena::allocate.
  Result<void*> allocate(std::uint64_t bytes);

  /// Frees memory of any session. Fails: invalid_argument (not from an arena, or freed before).
  Status free(void* memory);

 private:
  struct Kept {
    std::shared_ptr<Arena> arena;
    std::size_t blocks = 0;  ///< Allocations in use.
  };

  void forget_block(const Arena& arena);

  Mutex mutex_;
  /// The last one belongs to the present session.
  std::vector<Kept> kept_ HORO_GUARDED_BY(mutex_);
};

}  // namespace horo::runtime
