// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/arenas.hpp"

#include <algorithm>

namespace horo::runtime {

void Arenas::enter(std::shared_ptr<Arena> arena) {
  const MutexLock lock(mutex_);
  std::erase_if(kept_, [](const Kept& kept) { return kept.blocks == 0; });
  kept_.push_back({.arena = std::move(arena)});
}

Result<void*> Arenas::allocate(std::uint64_t bytes) {
  std::shared_ptr<Arena> arena;
  {
    const MutexLock lock(mutex_);
    if (kept_.empty()) return fail(Errc::not_initialized, "horo_init has not been called");
    arena = kept_.back().arena;
    ++kept_.back().blocks;
  }
  // Without the lock, because mapping many pages takes long.
  auto memory = arena->allocate(bytes);
  if (!memory) forget_block(*arena);
  return memory;
}

Status Arenas::free(void* memory) {
  std::shared_ptr<Arena> arena;
  {
    const MutexLock lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [memory](const Kept& kept) {
      return kept.arena->holds(memory);
    });
    if (found == kept_.end())
      return fail(Errc::invalid_argument, "{} was not allocated by horo_alloc", memory);
    arena = found->arena;
  }
  HORO_TRY_STATUS(arena->free(memory));
  forget_block(*arena);
  return {};
}

void Arenas::forget_block(const Arena& arena) {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&arena](const Kept& kept) {
    return kept.arena.get() == &arena;
  });
  if (found == kept_.end() || --found->blocks != 0 || found + 1 == kept_.end()) return;
  kept_.erase(found);
}

}  // namespace horo::runtime
