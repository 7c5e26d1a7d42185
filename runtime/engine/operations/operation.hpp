// SPDX-License-Identifier: Apache-2.0
// Operations: one submission each, from submit to release.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/futex.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "horo/horo.h"
#include "runtime/bucket/lent_memory.hpp"
#include "runtime/device/open_device.hpp"
#include "runtime/host/result_memory.hpp"

namespace horo::runtime {

/// How far an operation has to be for a wait to end.
enum class Until : std::uint8_t {
  done,
  launched,  ///< Its work on the device has begun, and a stream can wait for the rest.
};

/// An operation on device memory uses this.
struct DeviceUse {
  OpenDevice* gpu = nullptr;  ///< Null: it is in host memory.
  SharedEvent ready;          ///< The input is valid behind it.
  SharedEvent finished;       ///< Valid once launched: behind the operation's last work.
  /// Valid once done with an error: behind what the device still does for it. Null: nothing.
  SharedEvent abandoned;
  SharedResult result;  ///< Holds `Operation::result`; null: the operation owns none.
  std::optional<StreamHandle> reader;  ///< The stream that waits for it last.
  Status error;                        ///< The result has no memory.
};

/// Owns the state of one submission. Completed once, by the holder of the progress token; any
/// thread may read it after that.
class Operation {
 public:
  using Callback = horo_callback;

  std::uint64_t handle() const {
    return std::uint64_t{generation_.load(std::memory_order_relaxed)} << 32U | (index_ + 1);
  }

  bool done() const { return word_.load(std::memory_order_acquire) == kDone; }

  bool reached(Until until) const {
    return done() || (until == Until::launched && launched_.load(std::memory_order_acquire));
  }

  /// Its work on the device has begun; `on_device.finished` is set. Wakes the waiters.
  void launch();

  /// Valid once done.
  Errc status() const { return error_.code; }

  const std::string& message() const { return error_.message; }

  /// Valid once done; its code is `ok` after a success.
  const Error& error() const { return error_; }

  /// A callback that is due. It may outlive its operation.
  struct DueCallback {
    Callback call = nullptr;
    void* user = nullptr;
    std::uint64_t operation = 0;
    Errc status = Errc::ok;

    /// Blocks: as long as the user's code does.
    void run() const;
  };

  /// Publishes the end and wakes the waiters. Called once. The caller runs the callback, if there
  /// is one.
  std::optional<DueCallback> finish(const Error& end);

  /// Sleeps until the operation is done, nudge() is called, or `limit` has passed. May return
  /// early.
  void sleep(Duration limit);

  /// Ends the sleep of the thread that waits for the operation, or its next sleep.
  void nudge();

  /// Has `callback` run at the end, and returns true; runs it now and returns false when the
  /// operation is done. Fails: duplicate (it has one).
  Result<bool> on_complete(Callback callback, void* user);

  SetId set;
  std::uint16_t recorded_set = 0;  ///< See Board::recorded_set.
  TensorId tensor;

  bool keeps_result = false;          ///< A wait does not release the operation. Set at submit.
  std::uint64_t room = 0;             ///< Bytes at `out`, where the result's size is not known yet.
  std::vector<std::uint64_t> splits;  ///< For an alltoall over several hosts.
  DeviceUse on_device;

  // Valid once done, if the operation keeps its result:
  void* result = nullptr;  ///< In `memory`, or in the submitter's output.
  std::uint64_t result_bytes = 0;
  ResultMemory memory;
  std::vector<std::int64_t> rows;  ///< By rank: rows received from it; reducescatter: rows it got.

 private:
  friend class OperationTable;

  static constexpr std::uint32_t kPending = 0;
  static constexpr std::uint32_t kWaited = 1;  ///< Pending, with sleepers.
  static constexpr std::uint32_t kDone = 2;
  static constexpr std::uint32_t kNudged = 3;  ///< Pending; the next sleep returns at once.

  enum class CallbackState : std::uint32_t { none, setting, set, too_late };

  void reset();

  futex::Word word_{kPending};
  std::atomic<std::uint32_t> generation_{0};
  std::uint32_t index_ = 0;
  std::atomic<std::uint32_t> next_free_{0};
  std::atomic<CallbackState> callback_state_{CallbackState::none};
  std::atomic<bool> launched_{false};
  Callback callback_ = nullptr;
  void* user_ = nullptr;
  Error error_;
};

/// Owns all operations of a session, and the memory that they use. Thread: any. Blocks: only while
/// the table grows.
class OperationTable {
 public:
  OperationTable();
  ~OperationTable();
  OperationTable(const OperationTable&) = delete;
  OperationTable& operator=(const OperationTable&) = delete;

  /// An unused operation. Fails: resource_exhausted.
  Result<Operation*> take();
  void put(Operation& operation);

  ResultCache& results() { return results_; }

  LentMemory& lent() { return lent_; }

  /// Null when the handle was released or never existed.
  Operation* find(std::uint64_t handle) const;

  /// By index, for an operation that is in flight.
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

  /// Differs for each table of the process, so that no table finds a handle of an earlier one.
  const std::uint32_t first_generation_;
  LentMemory lent_;
  ResultCache results_;  ///< Outlives the operations, which give memory back to it.
  std::array<std::atomic<Operation*>, kBlocks> blocks_{};
  std::atomic<std::uint64_t> free_{0};  ///< tag << 32 | index + 1 of the first free one.
  Mutex growing_;
  std::uint32_t block_count_ HORO_GUARDED_BY(growing_) = 0;
};

}  // namespace horo::runtime
