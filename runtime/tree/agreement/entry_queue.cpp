// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/entry_queue.hpp"

namespace horo::runtime::tree {

Status EntryQueue::push(QueuedEntry&& entry) {
  waiting_.push_back(std::move(entry));
  return publish();
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
                                              .tuning = next.tuning}));
    if (!taken) return {};
    waiting_.pop_front();
  }
  return {};
}

}  // namespace horo::runtime::tree
