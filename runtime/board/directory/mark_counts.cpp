// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/directory/mark_counts.hpp"

#include "base/race_point.hpp"

namespace horo::runtime {

std::optional<std::uint64_t> MarkCounts::add(TensorId id, int member, std::uint64_t mark) const {
  const auto m = static_cast<std::size_t>(member);
  auto& slot = region_.tensor(id);
  if (!in_groups()) {
    slot.members.fetch_or(std::uint64_t{1} << m, std::memory_order_release);
    race_point();
    return slot.arrivals.fetch_add(mark, std::memory_order_seq_cst) + mark;
  }
  const auto own = std::uint64_t{1} << m % kMarkGroup | arrivals::direct(mark) * kDirect |
                   arrivals::in_line(mark) * kInline | arrivals::changed(mark) * kChanged;
  const auto group = group_of(id, m).fetch_add(own, std::memory_order_seq_cst) + own;
  race_point();
  if ((group & kGathered) != 0) return pass_on(id, own);
  if (static_cast<std::size_t>(std::popcount(group & kMembers)) < size_of_group(m))
    return std::nullopt;
  return pass_on(id, group);
}

bool MarkCounts::any(TensorId id) const {
  if (arrivals::marks(region_.tensor(id).arrivals.load(std::memory_order_seq_cst)) != 0)
    return true;
  if (!in_groups()) return false;
  for (std::size_t m = 0; m < region_.params().local_size; m += kMarkGroup) {
    if ((group_of(id, m).load(std::memory_order_seq_cst) & kMembers) != 0) return true;
  }
  return false;
}

std::optional<std::uint64_t> MarkCounts::gather(TensorId id, int member) const {
  if (!in_groups()) return std::nullopt;
  const auto m = static_cast<std::size_t>(member);
  const auto before = group_of(id, m).fetch_or(kGathered, std::memory_order_seq_cst);
  race_point();
  // A complete group is passed on, or about to be, by the member that completed it.
  const auto marks = static_cast<std::size_t>(std::popcount(before & kMembers));
  if ((before & kGathered) != 0 || marks == 0 || marks >= size_of_group(m)) return std::nullopt;
  // Members that mark from now on, or have done so just now, count themselves: if they were faster,
  // none of them has found the count complete.
  const auto now = pass_on(id, before);
  if (arrivals::marks(now) != region_.params().local_size) return std::nullopt;
  return now;
}

std::optional<std::uint64_t> MarkCounts::gather(TensorId id) const {
  if (!in_groups()) return std::nullopt;
  const auto members = static_cast<int>(region_.params().local_size);
  for (int m = 0; m < members; m += static_cast<int>(kMarkGroup)) {
    if (const auto completed = gather(id, m)) return completed;
  }
  return std::nullopt;
}

void MarkCounts::forget(TensorId id, int member) const {
  const auto m = static_cast<std::size_t>(member);
  auto& word = in_groups() ? group_of(id, m) : region_.tensor(id).members;
  const auto bit = in_groups() ? m % kMarkGroup : m;
  word.fetch_and(~(std::uint64_t{1} << bit), std::memory_order_relaxed);
}

void MarkCounts::clear(TensorId id) const {
  if (in_groups()) {
    for (std::size_t m = 0; m < region_.params().local_size; m += kMarkGroup)
      group_of(id, m).store(0, std::memory_order_release);
  } else {
    region_.tensor(id).members.store(0, std::memory_order_release);
  }
}

}  // namespace horo::runtime
