// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/entry_queue.hpp"

#include <algorithm>

namespace horo::runtime::tree {

Status EntryQueue::push(QueuedEntry&& entry) {
  // Entries of all sets come down in one order, in which they take their places: on this host and
  // on every other. Ranks that have joined take part in host memory.
  if (entry.kind == LogKind::work && !entry.ids.empty() && !entry.joined)
    entry.place = host_.take_place(entry.ids.front());
  waiting_.push_back(std::move(entry));
  return publish();
}

std::uint64_t EntryQueue::next_place() const {
  const auto next = std::find_if(waiting_.begin() + 1, waiting_.end(),
                                 [](const QueuedEntry& entry) { return entry.place != 0; });
  return next == waiting_.end() ? 0 : next->place;
}

Result<bool> EntryQueue::define_foreign(QueuedEntry& entry) {
  for (const auto& tensor : entry.foreign) {
    HORO_TRY(const auto id, host_.define(tensor.name, tensor.signature));
    if (!id) return false;
    entry.ids[tensor.position] = *id;
  }
  return true;
}

Status EntryQueue::publish() {
  while (!waiting_.empty()) {
    auto& next = waiting_.front();
    HORO_TRY(const bool defined, define_foreign(next));
    if (!defined) return {};
    HORO_TRY(const bool taken, host_.publish({.kind = next.kind,
                                              .ids = next.ids,
                                              .rows = next.rows,
                                              .inputs = next.inputs,
                                              .text = next.text,
                                              .ranks = &next.ranks,
                                              .tuning = next.tuning,
                                              .place = next.place,
                                              .next_place = next_place()}));
    if (!taken) return {};
    waiting_.pop_front();
  }
  return {};
}

}  // namespace horo::runtime::tree
