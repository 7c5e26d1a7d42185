// SPDX-License-Identifier: Apache-2.0
// Names give way to others where all slots are taken: under the directory's lock, on the one table
// that all ranks of the host share, so that all see the same. What is in use stays.
#include <algorithm>
#include <functional>

#include "runtime/coordinator/board.hpp"

namespace horo::runtime {

bool Board::pin(TensorHandle handle) {
  auto& pins = mine(handle.id).pins;
  // First the pin, then the look; retire() does it the other way round, in the same order of both.
  pins.fetch_add(1, std::memory_order_seq_cst);
  if (is_current(handle)) return true;
  pins.fetch_sub(1, std::memory_order_release);
  return false;
}

void Board::unpin(TensorId id) {
  mine(id).pins.fetch_sub(1, std::memory_order_release);
}

bool Board::is_pinned(TensorId id) const {
  for (int m = 0; m < local_size(); ++m) {
    if (is_pinned(id, m)) return true;
  }
  return false;
}

std::uint64_t Board::least_cursor() const {
  auto least = body_->tail.load(std::memory_order_seq_cst);
  for (int m = 0; m < local_size(); ++m) {
    if (rank_slot(m).state.load(std::memory_order_relaxed) != RankState::detached)
      least = std::min(least, ranks_[m].cursor.load(std::memory_order_seq_cst));
  }
  return least;
}

void Board::forget_name(TensorId id) {
  const std::uint32_t mask = 2 * params_.capacity - 1;
  auto hole = tensor(id).name_hash & mask;
  for (std::uint32_t probes = 0; buckets_[hole] != id.value() + 1; ++probes) {
    if (probes > mask) return;
    hole = (hole + 1) & mask;
  }
  // What was put further on because this place was taken moves up, so that it is still found.
  auto at = hole;
  for (std::uint32_t probes = 0; probes < mask; ++probes) {
    at = (at + 1) & mask;
    const auto value = buckets_[at];
    if (value == 0 || value > params_.capacity) break;
    const auto home = tensors_[value - 1].name_hash & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    buckets_[hole] = value;
    hole = at;
  }
  buckets_[hole] = 0;
}

void Board::move_to_group(std::atomic<std::uint32_t>& member, std::uint32_t group) {
  const auto before = member.load(std::memory_order_relaxed);
  if (before == group) return;
  if (auto* const aside = group_aside(before); aside != nullptr) --aside->group_refs;
  if (auto* const aside = group_aside(group); aside != nullptr) ++aside->group_refs;
  member.store(group, std::memory_order_relaxed);
}

bool Board::retire(TensorId id, std::uint64_t least_cursor) {
  auto& slot = tensor(id);
  // Ranks that have joined take part without a pin: until their cursor has passed.
  const auto in_use = [&] {
    return is_pinned(id) || arrivals::marks(slot.arrivals.load(std::memory_order_seq_cst)) != 0;
  };
  const auto* const aside = this->aside(id);
  const bool is_group = aside != nullptr && (aside->group_refs != 0 ||
                                             aside->parked.load(std::memory_order_acquire) != 0);
  if (is_group || slot.held.load(std::memory_order_acquire) != 0 ||
      slot.last_entry.load(std::memory_order_acquire) > least_cursor || in_use())
    return false;
  slot.incarnation.fetch_add(1, std::memory_order_seq_cst);
  if (in_use()) {
    slot.incarnation.fetch_sub(1, std::memory_order_seq_cst);
    return false;
  }
  for (std::uint32_t m = 0; m < params_.local_size; ++m) {
    auto& member = rank_tensors_[std::size_t{m} * params_.capacity + id.index()];
    move_to_group(member.group, 0);
    member.signature.store(0, std::memory_order_relaxed);
  }
  forget_name(id);
  return true;
}

std::optional<TensorId> Board::take_idle() {
  const auto least = least_cursor();
  const auto take = [&]() -> std::optional<TensorId> {
    while (!idle_.empty()) {
      const auto [used, id] = idle_.back();
      idle_.pop_back();
      if (tensor(id).last_entry.load(std::memory_order_relaxed) == used && retire(id, least))
        return id;
    }
    return std::nullopt;
  };
  if (const auto id = take()) return id;
  for (std::uint32_t i = 0; i < params_.capacity; ++i)
    idle_.emplace_back(tensors_[i].last_entry.load(std::memory_order_relaxed), TensorId{i});
  std::sort(idle_.begin(), idle_.end(), std::greater<>());
  const auto id = take();
  // The half that was used last is not looked at again before there is a new list.
  const auto recent = std::min<std::size_t>(idle_.size(), params_.capacity / 2);
  idle_.erase(idle_.begin(), idle_.begin() + static_cast<std::ptrdiff_t>(recent));
  return id;
}

}  // namespace horo::runtime
