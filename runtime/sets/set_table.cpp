// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/set_table.hpp"

#include <algorithm>
#include <sched.h>

namespace horo::runtime {

int ProcessSet::rank_of(Rank rank) const {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  return at != ranks.end() && *at == rank ? static_cast<int>(at - ranks.begin()) : -1;
}

ProcessSet* SetTable::find(std::span<const Rank> ranks) const {
  for (const auto id : ids()) {
    auto* const set = find(id);
    if (set != nullptr &&
        std::equal(ranks.begin(), ranks.end(), set->ranks.begin(), set->ranks.end()))
      return set;
  }
  return nullptr;
}

std::vector<SetId> SetTable::ids() const {
  std::vector<SetId> found;
  const auto end = end_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < end; ++i) {
    if (sets_[i].load(std::memory_order_acquire) != nullptr)
      found.push_back(SetId{static_cast<std::uint32_t>(i)});
  }
  return found;
}

std::optional<SetId> SetTable::free_id() const {
  for (std::size_t i = 0; i < kMostSets; ++i) {
    if (sets_[i].load(std::memory_order_relaxed) == nullptr)
      return SetId{static_cast<std::uint32_t>(i)};
  }
  return std::nullopt;
}

void SetTable::insert(std::unique_ptr<ProcessSet> set) {
  const auto index = set->id.index();
  sets_[index].store(set.get(), std::memory_order_release);
  end_.store(std::max(end_.load(std::memory_order_relaxed), index + 1), std::memory_order_release);
  owned_.push_back(std::move(set));
}

std::unique_ptr<ProcessSet> SetTable::take(SetId id) {
  auto* const set = sets_[id.index()].exchange(nullptr, std::memory_order_seq_cst);
  if (set == nullptr) return nullptr;
  while (visitors_.load(std::memory_order_seq_cst) != 0) sched_yield();
  const auto at = std::find_if(owned_.begin(), owned_.end(),
                               [set](const auto& owned) { return owned.get() == set; });
  auto taken = std::move(*at);
  owned_.erase(at);
  return taken;
}

}  // namespace horo::runtime
