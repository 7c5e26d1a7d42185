// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/start_places.hpp"

#include <algorithm>

#include "base/race_point.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/host/read_once.hpp"

namespace horo::runtime {

std::uint64_t StartPlaces::take() {
  auto& wait = region_.body().places_wait;
  auto& last = region_.host().body().last_place;
  // A rank that reads 0 here before this store has seen no place that is as large as the next one.
  if (wait.load(std::memory_order_relaxed) == 0)
    wait.store(last.load(std::memory_order_seq_cst) + 1, std::memory_order_seq_cst);
  race_point();
  return last.fetch_add(1, std::memory_order_seq_cst) + 1;
}

void StartPlaces::appended(std::uint64_t next) {
  race_point();
  region_.body().places_wait.store(next, std::memory_order_seq_cst);
}

std::uint64_t StartPlaces::first_after(std::uint64_t after) const {
  // First what waits, then the log: an entry is in the log before it no longer waits.
  const auto wait = region_.body().places_wait.load(std::memory_order_seq_cst);
  // The entry that waits may be behind one that was just appended and has the place `wait`.
  auto first = wait == 0 ? kNone : std::max(wait, after + 1);
  race_point();
  const auto end = log_.published();
  const auto done = region_.area(region_.me()).cursor.load(std::memory_order_relaxed);
  // No more can be unread; a tail that another process has spoilt must not keep this rank here.
  const auto begin = end - std::min<std::uint64_t>(end - std::min(done, end), kLogSlots);
  for (auto at = begin; at < end; ++at) {
    const auto place = copy_once(region_.tables().log[at % kLogSlots]).place;
    if (place > after) first = std::min(first, place);
  }
  return first;
}

}  // namespace horo::runtime
