// SPDX-License-Identifier: Apache-2.0
// Agreement: who has submitted what, and when that is all.
#include <algorithm>

#include "runtime/coordinator/board.hpp"

namespace horo::runtime {

bool Board::mark(TensorId id, const Offer& offer) {
  auto& mine = this->mine(id);
  mine.in_offset.store(offer.in_offset, std::memory_order_relaxed);
  mine.out_offset.store(offer.out_offset, std::memory_order_relaxed);
  mine.marked_at.store(host_.my_rank().last_call.load(std::memory_order_relaxed),
                       std::memory_order_relaxed);
  auto& slot = tensor(id);
  const auto me = static_cast<std::size_t>(me_);
  marked(id, me / 64).fetch_or(std::uint64_t{1} << (me % 64), std::memory_order_release);
  const auto add = arrivals::kMark + (offer.direct ? arrivals::kDirect : 0) +
                   (offer.in_line ? arrivals::kInline : 0) +
                   (offer.changed ? arrivals::kChanged : 0);
  const auto now = slot.arrivals.fetch_add(add, std::memory_order_seq_cst) + add;
  if (arrivals::marks(now) != params_.local_size) {
    if (signature(id, me_).kind == Kind::join) return false;  // That one needs everybody's mark.
    return body_->join_count.load(std::memory_order_seq_cst) != 0 && complete_without_joined(id);
  }
  make_ready(id, arrivals::changed(now) != 0);
  return true;
}

bool Board::same_group(TensorId id) const {
  const auto group = [this, id](int member) {
    return rank_tensor(id, member).group.load(std::memory_order_relaxed);
  };
  const auto first = group(first_marked(id));
  for (int m = 0; m < local_size(); ++m) {
    if (has_marked(id, m) && group(m) != first) return false;
  }
  return true;
}

void Board::make_ready(TensorId id, bool changed) {
  // Whoever has joined may complete a tensor that it knows nothing of.
  const int member = has_marked(id, me_) ? me_ : first_marked(id);
  auto* const group = group_aside(rank_tensor(id, member).group.load(std::memory_order_relaxed));
  // Ranks that disagree about the group get their mismatch at once.
  if (group == nullptr || (changed && !same_group(id))) return push_ready(id);
  auto& parked = group->parked;
  auto before = parked.load(std::memory_order_acquire);
  std::uint64_t after = 0;
  do {
    const auto count = (before >> 32U) + 1;
    tensor(id).parked_before.store(static_cast<std::uint32_t>(before), std::memory_order_relaxed);
    after = count >= group->group_size ? 0 : count << 32U | (id.value() + 1);
  } while (!parked.compare_exchange_weak(before, after, std::memory_order_acq_rel));
  if (after == 0) push_parked(id.value() + 1);
}

void Board::dissolve_group(TensorId id) {
  auto* const group = group_aside(mine(id).group.load(std::memory_order_relaxed));
  if (group == nullptr) return;
  push_parked(static_cast<std::uint32_t>(group->parked.exchange(0, std::memory_order_acq_rel)));
}

void Board::push_parked(std::uint32_t last) {
  std::vector<TensorId> members;
  while (last != 0 && last <= params_.capacity && members.size() < params_.capacity) {
    members.emplace_back(last - 1);
    last = tensor(members.back()).parked_before.load(std::memory_order_relaxed);
  }
  std::sort(members.begin(), members.end());
  for (const auto id : members) push_ready(id);
}

void Board::push_ready(TensorId id) {
  body_->ready_bytes.fetch_add(signature(id, me_).bytes(), std::memory_order_relaxed);
  const auto at = body_->ready_tail.fetch_add(1, std::memory_order_seq_cst);
  ready_[at & (params_.capacity - 1)].store(id.value() + 1, std::memory_order_seq_cst);
}

bool Board::complete_without_joined(TensorId id) {
  auto& slot = tensor(id);
  auto word = slot.arrivals.load(std::memory_order_seq_cst);
  for (;;) {
    const auto marks = arrivals::marks(word);
    if (marks == 0 || marks == params_.local_size || (word & arrivals::kReady) != 0) return false;
    std::uint32_t bits = 0;
    for (std::uint32_t m = 0; m < params_.local_size; ++m) {
      const auto bit = std::uint64_t{1} << (m % 64);
      const bool has_marked = (marked(id, m / 64).load(std::memory_order_seq_cst) & bit) != 0;
      if (!has_marked && (body_->joined[m / 64].load(std::memory_order_seq_cst) & bit) == 0)
        return false;
      bits += has_marked ? 1 : 0;
    }
    // Somebody is between his bit and his mark: he looks himself once he has added it.
    if (bits != marks) return false;
    // Fails if the tensor has been cut meanwhile: then somebody else saw what this rank sees.
    if (slot.arrivals.compare_exchange_weak(word, word | arrivals::kReady,
                                            std::memory_order_seq_cst))
      break;
  }
  make_ready(id, arrivals::changed(word) != 0);
  return true;
}

bool Board::join(TensorId id) {
  const auto me = static_cast<std::size_t>(me_);
  body_->joined[me / 64].fetch_or(std::uint64_t{1} << (me % 64), std::memory_order_seq_cst);
  if (body_->join_count.fetch_add(1, std::memory_order_seq_cst) + 1 == params_.local_size)
    body_->last_joined.store(global_rank(me_).value(), std::memory_order_seq_cst);
  // A marker adds its mark first and looks for joined ranks then, this one the other way round:
  // one of the two sees that the tensor is complete.
  bool any = false;
  const auto count = body_->tensor_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < std::min(count, params_.capacity); ++i) {
    if (i != id.value()) any = complete_without_joined(TensorId{i}) || any;
  }
  any = mark(id, {.in_line = true}) || any;
  // Last: who hears of it finds the join tensor ready, if this rank was the last to join here.
  body_->joined_told[me / 64].fetch_or(std::uint64_t{1} << (me % 64), std::memory_order_seq_cst);
  body_->joins_told.fetch_add(1, std::memory_order_seq_cst);
  return any || spans();
}

bool Board::unmark(TensorId id) {
  auto& slot = tensor(id);
  auto word = slot.arrivals.load(std::memory_order_acquire);
  do {
    if (arrivals::marks(word) >= params_.local_size || arrivals::marks(word) == 0 ||
        (word & arrivals::kReady) != 0)
      return false;
  } while (!slot.arrivals.compare_exchange_weak(word, word - arrivals::kMark,
                                                std::memory_order_acq_rel));
  const auto me = static_cast<std::size_t>(me_);
  marked(id, me / 64).fetch_and(~(std::uint64_t{1} << (me % 64)), std::memory_order_relaxed);
  return true;
}

bool Board::has_marked(TensorId id, int member) const {
  const auto r = static_cast<std::size_t>(member);
  return (marked(id, r / 64).load(std::memory_order_acquire) >> (r % 64) & 1U) != 0;
}

}  // namespace horo::runtime
