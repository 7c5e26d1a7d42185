// SPDX-License-Identifier: Apache-2.0
// One submission from submit to release, and the table that hands them out.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/futex.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "horo/horo.h"
#include "runtime/lent_memory.hpp"
#include "runtime/result_memory.hpp"

namespace horo::runtime {

/// Completed once, by the holder of the progress token; read by anyone after that.
class Operation {
 public:
  using Callback = horo_callback;

  std::uint64_t handle() const {
    return std::uint64_t{generation_.load(std::memory_order_relaxed)} << 32U | (index_ + 1);
  }

  bool done() const { return word_.load(std::memory_order_acquire) == kDone; }

  /// Valid once done.
  Errc status() const { return status_; }

  const std::string& message() const { return message_; }

  /// Publishes the end, wakes the waiters and runs the callback, if there is one: true. Once.
  bool finish(Errc status, std::string message);

  /// Sleeps until it is done, somebody nudges, or `limit` has passed. Spurious returns happen.
  void sleep(Duration limit);

  /// Ends the sleep of who waits for it, or the next one if nobody sleeps.
  void nudge();

  /// Arranges for `callback` to run at the end: true; or runs it now when that has passed. Fails:
  /// duplicate (it has one).
  Result<bool> on_complete(Callback callback, void* user);

  SetId set;
  std::uint16_t recorded_set = 0;  ///< Of the set's board.
  TensorId tensor;

  bool keeps_result = false;          ///< A wait does not release it. Set when it is submitted.
  std::uint64_t room = 0;             ///< Bytes at `out`, where the result's size is open.
  std::vector<std::uint64_t> splits;  ///< Of an alltoall over several hosts.

  // Valid once done, where it keeps its result:
  void* result = nullptr;  ///< In `memory`, or where the submitter made room.
  std::uint64_t result_bytes = 0;
  ResultMemory memory;
  std::vector<std::int64_t> rows;  ///< By rank: what came from it; reducescatter: what it got.

 private:
  friend class OperationTable;

  static constexpr std::uint32_t kPending = 0;
  static constexpr std::uint32_t kWaited = 1;  ///< Pending, with sleepers.
  static constexpr std::uint32_t kDone = 2;
  static constexpr std::uint32_t kNudged = 3;  ///< Pending; who is about to sleep does not.

  void reset();

  futex::Word word_{kPending};
  std::atomic<std::uint32_t> generation_{0};
  std::uint32_t index_ = 0;
  std::atomic<std::uint32_t> next_free_{0};
  std::atomic<std::uint32_t> callback_state_{0};  ///< 0 none, 1 set, 2 too late, 3 being set.
  Callback callback_ = nullptr;
  void* user_ = nullptr;
  Errc status_ = Errc::ok;
  std::string message_;
};

/// Thread: any. Blocks: only while it grows.
class OperationTable {
 public:
  OperationTable() = default;
  ~OperationTable();
  OperationTable(const OperationTable&) = delete;
  OperationTable& operator=(const OperationTable&) = delete;

  /// A fresh operation. Fails: resource_exhausted.
  Result<Operation*> take();
  void put(Operation& operation);

  ResultCache& results() { return results_; }

  LentMemory& lent() { return lent_; }

  /// Null when the handle was released or never existed.
  Operation* find(std::uint64_t handle) const;

  /// By index, for who holds one in flight.
  Operation& at(std::uint32_t index) const { return *slot(index); }

  static std::uint32_t index_of(const Operation& operation) { return operation.index_; }

 private:
  static constexpr std::size_t kBlock = 256;
  static constexpr std::size_t kBlocks = 4096;

  Operation* slot(std::uint32_t index) const {
    Operation* block = blocks_[index / kBlock].load(std::memory_order_acquire);
    return block == nullptr ? nullptr : block + index % kBlock;
  }

  Status grow();

  LentMemory lent_;
  ResultCache results_;  ///< Outlives the operations, which give back to it.
  std::array<std::atomic<Operation*>, kBlocks> blocks_{};
  std::atomic<std::uint64_t> free_{0};  ///< tag << 32 | index + 1 of the first free one.
  std::mutex growing_;
  std::uint32_t block_count_ = 0;  // HORO_GUARDED_BY(growing_)
};

}  // namespace horo::runtime
