// SPDX-License-Identifier: Apache-2.0
// Runs the entries of a process set's log, in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "runtime/board/board.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/device/device_clock.hpp"
#include "runtime/engine/agreement/agreement.hpp"
#include "runtime/engine/bucket_builder.hpp"
#include "runtime/engine/claims.hpp"
#include "runtime/engine/entry_observer.hpp"
#include "runtime/engine/operations/recording.hpp"
#include "runtime/engine/payload_runner.hpp"
#include "runtime/engine/transfers.hpp"
#include "runtime/host/result_memory.hpp"

namespace horo::runtime {

struct EngineCounters {
  std::atomic<std::uint64_t> tensors{0}, entries{0}, bytes{0}, fused_bytes{0}, direct_bytes{0},
      rounded_bytes{0};
};

/// Owns which entries this rank has begun and not finished. Thread: the holder of the progress
/// token, except where it says any.
class EntryRunner {
 public:
  EntryRunner(Board& board, OperationTable& operations, Claims& claims, Agreement& agreement,
              Transfers& transfers, Backend& backend);

  /// Begins the entries that can begin now; true when there was one. Fails: protocol,
  /// out_of_memory; as Backend::start.
  Result<bool> begin_entries();

  /// Finishes the entries whose data has moved, in order, and completes their operations; true when
  /// there was one.
  bool finish_entries();

  /// Tells the operations on device memory whose work has begun; true when there was one.
  bool publish_launched();

  /// Entries are begun and not done.
  bool active() const { return !started_.empty() || transfers_.preparing(); }

  /// Bytes of these entries.
  std::uint64_t bytes_in_flight() const;

  /// Entries begun since the start.
  std::uint64_t begun() const { return begun_; }

  /// The number behind the last of them in which all ranks have a share. A change of the tuning
  /// needs nothing from a rank that leaves before it.
  std::uint64_t begun_with_shares() const { return begun_with_shares_; }

  /// The log has entries to begin, or some are not done. Thread: any.
  bool has_news() const {
    return active_public_.load(std::memory_order_relaxed) != 0 ||
           board_.log().published() > begun_public_.load(std::memory_order_relaxed);
  }

  /// Peers need that this rank runs entries soon, some are not done, or the log is full because of
  /// this rank, and a tensor is ready. Thread: any.
  bool is_needed() const {
    const auto begun = begun_public_.load(std::memory_order_relaxed);
    return active_public_.load(std::memory_order_relaxed) != 0 || board_.log().needs(begun) ||
           (board_.log().published() > begun && board_.ready().has_ready() &&
            !board_.log().has_room());
  }

  /// As Engine::observe.
  void observe(EntryObserver* observer) { observer_ = observer; }

  /// Entries in device memory are begun and not done.
  bool uses_device() const { return on_device_ != 0; }

  /// Drops all entries that are begun. Comes after the backend's abort: streams that wait for their
  /// operations come behind what devices still do for them.
  void abort();

  const EngineCounters& counters() const { return counters_; }

 private:
  /// An entry in device memory has this besides.
  struct OnDevice {
    DeviceOutcome outcome;
    SharedEvent finished;
    DeviceTimes times;
    bool published = false;  ///< The operations know that they are launched.
  };

  /// An entry that has begun.
  struct Started {
    std::vector<TensorId> ids;          ///< The tensors that this rank has submitted.
    std::vector<ResultMemory> neutral;  ///< See EntryBucket.
    std::uint64_t bytes = 0;
    DataPath path = DataPath::staged;
    Ticket ticket = 0;
    std::unique_ptr<OnDevice> device{};  ///< Null: in host memory.
  };

  Status begin(const Entry& entry);
  /// As begin(); `started` is already the last of `started_`.
  Status begin_in_place(const Entry& entry, Started& started);
  Status list_tensors(const Entry& entry, Started& started);
  Status begin_work(const Entry& entry, Started& started);
  /// Nothing where the payloads travel with the marks.
  BucketMover mover_of(const Entry& entry, const Bucket& bucket) const;
  Status begin_join(const Entry& entry, const Started& started);
  void end_mismatch(const Entry& entry, Started& started);
  bool is_done(const Started& entry) const;
  void prepare_device(Started& started, Bucket& bucket);
  static Error end_of(const OnDevice& device, const Operation* operation);
  void finish_first();
  void end_after_departure();
  void keep_ends() const;
  void count(const Bucket& bucket);
  void publish_activity();

  Board& board_;
  OperationTable& operations_;
  Claims& claims_;
  Agreement& agreement_;
  Transfers& transfers_;
  Backend& backend_;
  BucketBuilder builder_;
  PayloadRunner payloads_;

  EntryWords words_;  ///< The entry that begins points here.
  std::deque<Started> started_;
  std::size_t on_device_ = 0;        ///< Those of them in device memory.
  std::vector<TensorId> spare_ids_;  ///< Memory of a finished entry's list, for the next entry.
  std::uint64_t begun_ = 0;          ///< The number of the next entry to read.
  std::uint64_t begun_with_shares_ = 0;
  std::uint64_t cursor_ = 0;
  Rank left_{-1};     ///< The log says that this rank has left; earlier entries are not done yet.
  CopyTimes copied_;  ///< By the backend, up to the entry that ended last.
  std::atomic<std::uint64_t> begun_public_{0};
  std::atomic<std::uint32_t> active_public_{0};
  EngineCounters counters_;
  EntryObserver* observer_ = nullptr;
};

}  // namespace horo::runtime
