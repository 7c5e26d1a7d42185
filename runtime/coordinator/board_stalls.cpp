// SPDX-License-Identifier: Apache-2.0
// What a set's tables say about tensors and entries that do not come to an end.
#include <algorithm>
#include <iterator>

#include "runtime/coordinator/board.hpp"

namespace horo::runtime {

std::string_view Board::group_name(GroupRef group) const {
  if (group.slot == 0 || group.slot > params_.capacity) return {};
  auto name = tensor_name(TensorId{group.slot - 1});
  name = name.substr(std::min(kGroupPrefix.size(), name.size()));
  return name.substr(0, name.rfind('/'));
}

std::optional<Unfinished> Board::inspect_unfinished(TensorId id) const {
  const auto& slot = tensor(id);
  const auto generation = slot.generation.load(std::memory_order_acquire);
  // In one order with the marker's look at `due`: see StallWatch.
  const auto word = slot.arrivals.load(std::memory_order_seq_cst);
  if (arrivals::marks(word) == 0) return std::nullopt;
  Unfinished found{.id = id};
  std::vector<int> unmarked;
  for (int m = 0; m < local_size(); ++m) {
    if (!has_marked(id, m)) {
      unmarked.push_back(m);
      continue;
    }
    const auto& theirs = rank_tensor(id, m);
    const auto at = theirs.marked_at.load(std::memory_order_relaxed);
    found.since = found.since == 0 ? at : std::min(found.since, at);
    found.group = group_of(id, m);
    found.join = signature(id, m).kind == Kind::join;
  }
  std::copy_if(unmarked.begin(), unmarked.end(), std::back_inserter(found.missing),
               [&](int m) { return found.join || !has_joined(m); });
  const auto waits_for_group = [&] {
    const auto* const group = group_aside(found.group.slot);
    return group != nullptr && group->parked.load(std::memory_order_acquire) != 0;
  };
  if (!found.missing.empty()) {
    found.group = {};
  } else if (waits_for_group()) {
    // Lacks the others of the group.
  } else if (spans()) {
    found.group = {};
    found.elsewhere = true;
  } else {
    // Ready: lacks at most who is about to put it into an entry.
    const auto holder = body_->combiner.load(std::memory_order_relaxed);
    if (holder == 0 || holder > params_.local_size) return std::nullopt;
    found.group = {};
    found.ready = true;
    found.missing.push_back(static_cast<int>(holder) - 1);
  }
  // In an entry meanwhile: what was read may be of two generations.
  if (slot.generation.load(std::memory_order_acquire) != generation) return std::nullopt;
  return found;
}

std::vector<Unfinished> Board::unfinished() const {
  std::vector<Unfinished> all;
  const auto count = body_->tensor_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < std::min(count, params_.capacity); ++i) {
    if (auto one = inspect_unfinished(TensorId{i})) all.push_back(std::move(*one));
  }
  // A complete tensor lacks whom the others of its group lack.
  for (auto& waits : all) {
    if (waits.group.slot == 0) continue;
    for (const auto& other : all) {
      if (other.group.slot != 0 || other.ready) continue;
      for (int m = 0; m < local_size(); ++m) {
        if (!has_marked(other.id, m) || group_of(other.id, m) != waits.group) continue;
        waits.missing.insert(waits.missing.end(), other.missing.begin(), other.missing.end());
        break;
      }
    }
    std::sort(waits.missing.begin(), waits.missing.end());
    waits.missing.erase(std::unique(waits.missing.begin(), waits.missing.end()),
                        waits.missing.end());
  }
  return all;
}

UnderWay Board::under_way() const {
  constexpr std::size_t kMostNamed = 64;
  const auto tail = body_->tail.load(std::memory_order_acquire);
  UnderWay found{.progress = tail};

  struct Done {
    std::uint64_t entries;
    std::uint64_t steps;
    auto operator<=>(const Done&) const = default;
  };

  auto least = Done{tail, ~std::uint64_t{0}};
  for (int m = 0; m < local_size(); ++m) {
    const auto& area = ranks_[m];
    const Done done{area.cursor.load(std::memory_order_acquire),
                    area.copied_in.load(std::memory_order_relaxed) +
                        area.reduced.load(std::memory_order_relaxed) +
                        area.copied_out.load(std::memory_order_relaxed) +
                        area.direct_done.load(std::memory_order_relaxed)};
    found.progress += done.entries + done.steps;
    if (done.entries >= tail ||
        rank_slot(m).state.load(std::memory_order_relaxed) == RankState::detached)
      continue;
    found.behind.push_back(m);
    if (done < least) {
      least = done;
      found.last.clear();
    }
    if (done == least) found.last.push_back(m);
  }
  if (found.behind.empty()) return found;
  found.entries = tail - least.entries;
  const LogSlot& entry = log_[least.entries % kLogSlots];
  const auto first = entry.first_word;
  const auto count = std::min<std::uint64_t>(entry.count, kMostNamed);
  if (first > layout_.word_count || count > layout_.word_count - first) return found;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto id = words_[first + i];
    if (id < std::min(body_->tensor_count.load(std::memory_order_acquire), params_.capacity))
      found.names.emplace_back(tensor_name(TensorId{static_cast<std::uint32_t>(id)}));
  }
  return found;
}

}  // namespace horo::runtime
