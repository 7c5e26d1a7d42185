// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/directory/eviction.hpp"

#include <algorithm>
#include <functional>

#include "base/race_point.hpp"
#include "runtime/board/directory/mark_counts.hpp"

namespace horo::runtime {

bool Eviction::is_in_use(TensorId id, std::uint64_t least_cursor) const {
  for (int m = 0; m < region_.local_size(); ++m) {
    if (region_.rank_tensor(id, m).pins.load(std::memory_order_seq_cst) != 0) return true;
  }
  const auto& slot = region_.tensor(id);
  if (MarkCounts(region_).any(id)) return true;
  if (slot.held.load(std::memory_order_acquire) != 0) return true;
  // Joined ranks take part without a pin: the slot stays until every cursor has passed its entry.
  // This look comes last. A rank unpins, and the leader lets go, behind the write of the entry's
  // number. An earlier look would miss an entry of a rank that has pinned and unpinned meanwhile.
  return slot.last_entry.load(std::memory_order_acquire) > least_cursor;
}

bool Eviction::retire(TensorId id, std::uint64_t least_cursor) {
  auto& slot = region_.tensor(id);
  const auto* const aside = memory_.aside(id);
  const bool has_members = aside != nullptr && (aside->group_refs != 0 ||
                                                aside->parked.load(std::memory_order_acquire) != 0);
  if (has_members || is_in_use(id, least_cursor)) return false;
  race_point();
  // Move the incarnation on, then look at the pins; Directory::pin() does the opposite.
  slot.incarnation.fetch_add(1, std::memory_order_seq_cst);
  if (is_in_use(id, least_cursor)) {
    slot.incarnation.fetch_sub(1, std::memory_order_seq_cst);
    return false;
  }
  for (int m = 0; m < region_.local_size(); ++m) {
    auto& member = region_.rank_tensor(id, m);
    groups_.move(member.group, 0);
    member.signature.store(0, std::memory_order_relaxed);
  }
  names_.erase(id);
  return true;
}

std::optional<TensorId> Eviction::retire_next(std::uint64_t least_cursor) {
  while (!candidates_.empty()) {
    const auto [last_entry, id] = candidates_.back();
    candidates_.pop_back();
    if (region_.tensor(id).last_entry.load(std::memory_order_relaxed) == last_entry &&
        retire(id, least_cursor))
      return id;
  }
  return std::nullopt;
}

std::optional<TensorId> Eviction::free_slot() {
  const auto least = region_.least_cursor(region_.body().tail.load(std::memory_order_seq_cst));
  if (const auto id = retire_next(least)) return id;
  const auto capacity = region_.params().capacity;
  for (std::uint32_t i = 0; i < capacity; ++i) {
    const TensorId id{i};
    candidates_.emplace_back(region_.tensor(id).last_entry.load(std::memory_order_relaxed), id);
  }
  std::sort(candidates_.begin(), candidates_.end(), std::greater<>());
  const auto id = retire_next(least);
  // The more recent half is not a candidate again before the next list is made.
  const auto recent = std::min<std::size_t>(candidates_.size(), capacity / 2);
  candidates_.erase(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(recent));
  return id;
}

}  // namespace horo::runtime
