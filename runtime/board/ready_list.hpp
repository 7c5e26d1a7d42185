// SPDX-License-Identifier: Apache-2.0
// The tensors of a process set that are ready and in no log entry yet.
#pragma once

#include <cstdint>
#include <optional>

#include "base/race_point.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// Owns the order in which tensors became ready. Any thread adds; one at a time takes: the holder
/// of the combiner word or, where a set has members on other hosts, their leader. Thread: any,
/// except release().
class ReadyList {
 public:
  explicit ReadyList(const SetRegion& region) : region_(region) {}

  /// Adds a tensor of `bytes`.
  void push(TensorId id, std::uint64_t bytes) {
    auto& body = region_.body();
    body.ready_bytes.fetch_add(bytes, std::memory_order_relaxed);
    const auto at = body.ready_tail.fetch_add(1, std::memory_order_seq_cst);
    race_point();
    cell(at).store(id.value() + 1, std::memory_order_seq_cst);
  }

  /// A tensor is on the list, or the cutter has taken it and put it into no entry yet.
  bool has_ready() const {
    const auto& body = region_.body();
    const auto head = body.ready_head.load(std::memory_order_seq_cst);
    return body.pending_count.load(std::memory_order_seq_cst) != 0 ||
           (head != body.ready_tail.load(std::memory_order_seq_cst) &&
            cell(head).load(std::memory_order_seq_cst) != 0);
  }

  /// No thread is in the middle of adding a tensor.
  bool is_settled() const {
    const auto& body = region_.body();
    const auto tail = body.ready_tail.load(std::memory_order_seq_cst);
    for (auto at = head(); at != tail; ++at) {
      if (cell(at).load(std::memory_order_seq_cst) == 0) return false;
    }
    return true;
  }

  /// Bytes that became ready since the list was last taken.
  std::uint64_t bytes() const { return region_.body().ready_bytes.load(std::memory_order_relaxed); }

  /// When the oldest tensor on the list became ready, in ticks of timeline/record/ticks.hpp; 0:
  /// unknown.
  std::uint64_t ready_since() const {
    return region_.body().first_ready.load(std::memory_order_relaxed);
  }

  /// The same; `now` becomes that time where it is unknown.
  std::uint64_t ready_since_or(std::uint64_t now) {
    auto& first = region_.body().first_ready;
    auto since = first.load(std::memory_order_relaxed);
    if (since == 0 && first.compare_exchange_strong(since, now, std::memory_order_relaxed))
      return now;
    return since;
  }

  // -- By the one thread that takes -------------------------------------------------------------

  /// Place of the oldest tensor.
  std::uint64_t head() const { return region_.body().ready_head.load(std::memory_order_relaxed); }

  /// The tensor at `place`, counted on from head(); none: the list ends there.
  std::optional<TensorId> at(std::uint64_t place) const {
    if (place - head() >= region_.params().capacity) return std::nullopt;
    const auto value = cell(place).load(std::memory_order_acquire);
    if (value == 0 || value > region_.params().capacity) return std::nullopt;
    return TensorId{value - 1};
  }

  /// The tensors before place `end` are taken. has_ready() must be true by other means if one of
  /// them is in no entry yet.
  void release(std::uint64_t end) {
    auto& body = region_.body();
    for (auto place = head(); place != end; ++place)
      cell(place).store(0, std::memory_order_relaxed);
    body.ready_head.store(end, std::memory_order_seq_cst);
    body.ready_bytes.store(0, std::memory_order_relaxed);
    body.first_ready.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t>& cell(std::uint64_t at) const {
    return region_.tables().ready[at & (region_.params().capacity - 1)];
  }

  const SetRegion& region_;
};

}  // namespace horo::runtime
