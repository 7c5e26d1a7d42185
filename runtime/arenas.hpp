// SPDX-License-Identifier: Apache-2.0
// Memory that a program was given from arenas, over all sessions of the process: what outlives its
// session stays where it is until it is given back, so that nothing of a later one lies there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.hpp"
#include "runtime/arena.hpp"

namespace horo::runtime {

/// Thread: any.
class Arenas {
 public:
  /// Of a session that begins: what is asked for from now on comes from there. Arenas of sessions
  /// before it stay while something of them is in use, with the memory of their host.
  void enter(std::shared_ptr<Arena> arena);

  /// Fails: not_initialized, and as Arena::allocate.
  Result<void*> allocate(std::uint64_t bytes);

  /// Of whichever session. Fails: invalid_argument (not from here, or given back).
  Status free(void* memory);

 private:
  struct Kept {
    std::shared_ptr<Arena> arena;
    std::size_t blocks = 0;  ///< In use.
  };

  void forget_block(const Arena& arena);

  std::mutex mutex_;
  std::vector<Kept> kept_;  // HORO_GUARDED_BY(mutex_): the last is the session's
};

}  // namespace horo::runtime
