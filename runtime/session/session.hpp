// SPDX-License-Identifier: Apache-2.0
// One rank's life in a job: everything behind the C ABI that is not a conversion.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/kv/auth.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"
#include "runtime/engine/operations/operation.hpp"
#include "runtime/engine/operations/recording.hpp"
#include "runtime/host/arena.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/session/call_notes.hpp"
#include "runtime/session/progress_driver.hpp"
#include "runtime/session/set_changes.hpp"
#include "runtime/session/submitter.hpp"
#include "runtime/sets/job_hosts.hpp"
#include "runtime/sets/process_sets.hpp"
#include "runtime/sets/start_clock.hpp"
#include "runtime/stalls/stall_monitor.hpp"
#include "runtime/tuning/tuner.hpp"

namespace horo::runtime {

/// The values that a session takes from the knobs.
struct SessionOptions {
  BoardParams board;
  Duration start_timeout = std::chrono::seconds(30);
  Duration release_timeout = std::chrono::seconds(1);   ///< As the knob.
  Duration elastic_timeout = std::chrono::minutes(10);  ///< As the knob.
  std::optional<Duration> spin;                         ///< Nothing: chosen by the number of cores.
  /// Core on which the runtime's own thread runs. Nothing: every core of the process.
  std::optional<int> core{};
  GroupFusion groups = GroupFusion::with_all;
  bool wake_delay_set = false;  ///< By the user; else it is longer where no core is spare.
  StallTimes stalls;
  JobHostsOptions hosts;  ///< For a job on several hosts.
  RecordingOptions recording;
  WireRule wire;  ///< For tensors that ask for nothing.
  tuning::TunerOptions tuner;
  DeviceOptions devices{};
};

struct SessionCounters {
  std::uint64_t tensors = 0, entries = 0, bytes = 0, fused_bytes = 0, direct_bytes = 0, sleeps = 0,
                wakes = 0, rounded_bytes = 0;
};

/// Joins and leaves the job, and hands every call on to the part that owns it. Thread: any.
class Session {
 public:
  /// Attaches to the board of `meeting`. Blocks: until all ranks have. Fails: timed_out, peer_lost,
  /// unsupported, out_of_memory, protocol; as JobHosts::meet.
  static Result<std::unique_ptr<Session>> join(bootstrap::Meeting meeting,
                                               const SessionOptions& options);

  /// After shutdown(). Blocks: while another thread is inside add_set() or remove_set().
  ~Session() {
    shutdown();
    set_changes_.await_callers();
  }

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const WorkerIdentity& identity() const { return meeting_.identity; }

  const bootstrap::Membership& membership() const { return meeting_.membership; }

  /// Every host runs as many ranks as every other.
  bool homogeneous() const;

  /// Whether the runtime begins what is submitted before a caller waits or polls.
  bool overlaps() const;

  /// A key that only the job's ranks know. Fails: not_found (one host: there is no secret).
  Result<kv::Secret> derive_key(std::string_view purpose) const;

  /// Leaves the job; pending operations that not all ranks have submitted end with shut_down.
  /// Blocks: until what is agreed has been done. Idempotent. Thread: one at a time.
  void shutdown();

  // -- Process sets -----------------------------------------------------------------------------

  /// As SetChanges::add: all ranks of the job call it with the same ranks, and as often and in the
  /// same order as remove_set.
  Result<SetId> add_set(std::vector<Rank> ranks) { return set_changes_.add(std::move(ranks)); }

  /// As SetChanges::remove: all ranks call it.
  Status remove_set(SetId id) { return set_changes_.remove(id); }

  const SetTable& sets() const { return sets_.table(); }

  // -- Tensors ----------------------------------------------------------------------------------

  /// As Submitter::declare.
  Result<TensorHandle> declare(SetId set, std::string_view name, const Signature& signature,
                               const GroupName& group = {}) {
    return submitter_.declare(set, name, signature, group);
  }

  /// As Submitter::submit.
  Result<Operation*> submit(SetId set, TensorHandle tensor, const Submission& given) {
    return submitter_.submit({.set = set, .tensor = tensor, .given = given});
  }

  /// As Submitter::submit_all.
  Status submit_all(std::span<const SetSubmission> submissions,
                    std::vector<Operation*>& operations) {
    return submitter_.submit_all(submissions, operations);
  }

  /// Makes some progress if no other thread does. Blocks: no.
  void poke() { driver_.poke(); }

  /// As ProgressDriver::on_complete.
  Status on_complete(Operation& operation, Operation::Callback callback, void* user) {
    return driver_.on_complete(operation, callback, user);
  }

  /// True when all are done, false when the deadline passed first.
  bool wait(std::span<Operation* const> operations, const Deadline& deadline,
            Until until = Until::done) {
    return driver_.wait(operations, deadline, until);
  }

  bool wait(Operation& operation, const Deadline& deadline) {
    Operation* const one = &operation;
    return wait({&one, 1}, deadline);
  }

  OperationTable& operations() { return operations_; }

  /// It may outlive the session.
  const std::shared_ptr<Arena>& arena() { return arena_; }

  SessionCounters counters() const;

 private:
  Session(bootstrap::Meeting meeting, const SessionOptions& options,
          std::shared_ptr<HostMemory> host);
  Status meet(const SessionOptions& options, StartClock start);
  void start(const SessionOptions& options);
  void note_loss(Rank lost);
  void start_tuner(const tuning::TunerOptions& options);

  bootstrap::Meeting meeting_;
  const std::shared_ptr<HostMemory> host_;
  std::unique_ptr<JobHosts> hosts_;  ///< Null: the job has one host.
  OperationTable operations_;
  const std::shared_ptr<Arena> arena_;
  std::unique_ptr<tuning::Tuner> tuner_;  ///< Null on most ranks. The world's engine knows it.
  const DeviceOptions devices_;
  ProcessSets sets_;
  StallMonitor stalls_;
  CallNotes calls_;
  ProgressDriver driver_;
  Submitter submitter_;
  SetChanges set_changes_;
};

}  // namespace horo::runtime
