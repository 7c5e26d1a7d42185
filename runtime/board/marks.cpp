// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/marks.hpp"

#include <algorithm>
#include <vector>

#include "base/race_point.hpp"

namespace horo::runtime {

bool Marks::mark(TensorId id, const Contribution& contribution) {
  const int member = region_.me();
  auto& mine = region_.rank_tensor(id, member);
  mine.in_offset.store(contribution.in_offset, std::memory_order_relaxed);
  mine.out_offset.store(contribution.out_offset, std::memory_order_relaxed);
  mine.marked_at.store(region_.host().my_rank().last_call.load(std::memory_order_relaxed),
                       std::memory_order_relaxed);
  mine.marked_ticks.store(short_ticks(contribution.ticks), std::memory_order_relaxed);
  const auto add = arrivals::kMark + (contribution.direct ? arrivals::kDirect : 0) +
                   (contribution.in_line ? arrivals::kInline : 0) +
                   (contribution.changed ? arrivals::kChanged : 0);
  const auto now = counts_.add(id, member, add);
  race_point();
  if (!now || arrivals::marks(*now) != region_.params().local_size) {
    // The join tensor needs every member's mark.
    if (directory_.signatures().declared(id, member).kind == Kind::join) return false;
    return region_.body().join_count.load(std::memory_order_seq_cst) != 0 &&
           complete_without_joined(id);
  }
  make_ready(id, arrivals::changed(*now) != 0);
  return true;
}

TakenBack Marks::unmark(TensorId id) {
  if (const auto now = counts_.gather(id, region_.me())) {
    make_ready(id, arrivals::changed(*now) != 0);
    return TakenBack::completed;
  }
  auto& counter = region_.tensor(id).arrivals;
  auto word = counter.load(std::memory_order_acquire);
  do {
    if (arrivals::marks(word) >= region_.params().local_size || arrivals::marks(word) == 0 ||
        (word & arrivals::kReady) != 0)
      return TakenBack::no;
  } while (!counter.compare_exchange_weak(word, word - arrivals::kMark, std::memory_order_acq_rel));
  counts_.forget(id, region_.me());
  return TakenBack::yes;
}

Marks::LastMark Marks::last_marked(TensorId id, std::uint64_t now) const {
  LastMark last{.member = -1};
  for (int m = 0; m < region_.local_size(); ++m) {
    if (!has_marked(id, m)) continue;
    const auto ago =
        ticks_between(region_.rank_tensor(id, m).marked_ticks.load(std::memory_order_relaxed), now);
    if (last.member < 0 || ago < last.ticks_ago) last = {.member = m, .ticks_ago = ago};
  }
  return last;
}

int Marks::first_marked(TensorId id) const {
  int member = 0;
  while (member + 1 < region_.local_size() && !has_marked(id, member)) ++member;
  return member;
}

bool Marks::same_group(TensorId id) const {
  const auto group = [this, id](int member) {
    return region_.rank_tensor(id, member).group.load(std::memory_order_relaxed);
  };
  const auto first = group(first_marked(id));
  for (int m = 0; m < region_.local_size(); ++m) {
    if (has_marked(id, m) && group(m) != first) return false;
  }
  return true;
}

void Marks::make_ready(TensorId id, bool changed) {
  // A rank that has joined may complete a tensor that it has never declared.
  const int member = has_marked(id, region_.me()) ? region_.me() : first_marked(id);
  auto* const group = directory_.groups().record(
      region_.rank_tensor(id, member).group.load(std::memory_order_relaxed));
  // Ranks that disagree about the group get their mismatch at once.
  if (group == nullptr || (changed && !same_group(id))) return push(id);
  auto& parked = group->parked;
  auto before = parked.load(std::memory_order_acquire);
  std::uint64_t after = 0;
  do {
    const auto count = (before >> 32U) + 1;
    region_.tensor(id).parked_before.store(static_cast<std::uint32_t>(before),
                                           std::memory_order_relaxed);
    after = count >= group->group_size ? 0 : count << 32U | (id.value() + 1);
  } while (!parked.compare_exchange_weak(before, after, std::memory_order_acq_rel));
  if (after == 0) push_parked(id.value() + 1);
}

void Marks::dissolve_group(TensorId id) {
  const auto slot = region_.rank_tensor(id, region_.me()).group.load(std::memory_order_relaxed);
  auto* const group = directory_.groups().record(slot);
  if (group == nullptr) return;
  push_parked(static_cast<std::uint32_t>(group->parked.exchange(0, std::memory_order_acq_rel)));
}

void Marks::push_parked(std::uint32_t last) {
  const auto capacity = region_.params().capacity;
  std::vector<TensorId> members;
  while (last != 0 && last <= capacity && members.size() < capacity) {
    members.emplace_back(last - 1);
    last = region_.tensor(members.back()).parked_before.load(std::memory_order_relaxed);
  }
  std::sort(members.begin(), members.end());
  for (const auto id : members) push(id);
}

void Marks::push(TensorId id) {
  ready_.push(id, directory_.signatures().declared(id, region_.me()).bytes());
}

bool Marks::everyone_else_has_joined(TensorId id, std::uint32_t marks) const {
  std::uint32_t bits = 0;
  for (std::uint32_t m = 0; m < region_.params().local_size; ++m) {
    const auto bit = std::uint64_t{1} << (m % 64);
    const bool marked = counts_.has(id, static_cast<int>(m), std::memory_order_seq_cst);
    if (!marked && (region_.body().joined[m / 64].load(std::memory_order_seq_cst) & bit) == 0)
      return false;
    bits += marked ? 1 : 0;
  }
  // A rank that has set its bit and not yet counted its mark looks for itself afterwards.
  return bits == marks;
}

bool Marks::complete_without_joined(TensorId id) {
  if (const auto now = counts_.gather(id)) {
    make_ready(id, arrivals::changed(*now) != 0);
    return true;
  }
  auto& counter = region_.tensor(id).arrivals;
  auto word = counter.load(std::memory_order_seq_cst);
  for (;;) {
    const auto marks = arrivals::marks(word);
    if (marks == 0 || marks == region_.params().local_size || (word & arrivals::kReady) != 0)
      return false;
    if (!everyone_else_has_joined(id, marks)) return false;
    race_point();
    // Fails if the tensor has been put into an entry meanwhile, by a rank that saw the same.
    if (counter.compare_exchange_weak(word, word | arrivals::kReady, std::memory_order_seq_cst))
      break;
  }
  make_ready(id, arrivals::changed(word) != 0);
  return true;
}

bool Marks::join(TensorId id) {
  auto& body = region_.body();
  const auto me = static_cast<std::size_t>(region_.me());
  const auto bit = std::uint64_t{1} << (me % 64);
  body.joined[me / 64].fetch_or(bit, std::memory_order_seq_cst);
  race_point();
  if (body.join_count.fetch_add(1, std::memory_order_seq_cst) + 1 == region_.params().local_size)
    body.last_joined.store(region_.global_rank(region_.me()).value(), std::memory_order_seq_cst);
  // A marker adds its mark and then looks for joined ranks; this rank joins and then looks at the
  // marks. One of the two sees that the tensor is complete.
  bool any = false;
  const auto count = region_.tensor_count();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i != id.value()) any = complete_without_joined(TensorId{i}) || any;
  }
  any = mark(id, {.in_line = true}) || any;
  race_point();
  // Last: a leader that sees this finds the join tensor ready, if this rank was the last to join.
  body.joined_told[me / 64].fetch_or(bit, std::memory_order_seq_cst);
  body.joins_told.fetch_add(1, std::memory_order_seq_cst);
  return any;
}

void Marks::begin_generation(TensorId id, std::uint64_t entry) {
  auto& slot = region_.tensor(id);
  // Only the combiner, which appends the entry, writes the generation. It moves on before the marks
  // are cleared, with release stores: StallView, which finds a mark cleared, finds it moved on.
  slot.generation.store(slot.generation.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  counts_.clear(id);
  slot.last_entry.store(entry, std::memory_order_relaxed);
  slot.held.store(0, std::memory_order_release);
  slot.arrivals.store(0, std::memory_order_relaxed);
}

void Marks::forget_joins() {
  auto& body = region_.body();
  for (auto& members : body.joined) members.store(0, std::memory_order_relaxed);
  body.join_count.store(0, std::memory_order_relaxed);
  for (auto& members : body.joined_told) members.store(0, std::memory_order_relaxed);
  body.joins_told.store(0, std::memory_order_relaxed);
  body.joins_taken.store(0, std::memory_order_relaxed);
}

}  // namespace horo::runtime
