// SPDX-License-Identifier: Apache-2.0
// Declares and submits tensors, and wakes the threads that a submission needs.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runtime/backends/device/device_options.hpp"
#include "runtime/engine/operations/operation.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/session/call_notes.hpp"
#include "runtime/session/progress_driver.hpp"
#include "runtime/sets/process_sets.hpp"
#include "runtime/stalls/stall_monitor.hpp"
#include "timeline/record/ticks.hpp"

namespace horo::runtime {

struct SetSubmission {
  SetId set;
  TensorHandle tensor;
  Submission given;
};

/// The tensors with which members of a group may share a log entry.
enum class GroupFusion : std::uint8_t { with_all, inside };

/// Owns the rule by which a submission wakes threads. A submission makes no system call unless it
/// has to wake one. Thread: any.
class Submitter {
 public:
  /// All outlive this.
  Submitter(HostMemory& host, ProcessSets& sets, OperationTable& operations, StallMonitor& stalls,
            CallNotes& calls, ProgressDriver& driver);

  /// Before the first declaration; `tree` is null where the job has one host. `groups`: whether
  /// members of a group may fuse with other tensors. `devices` outlives this.
  void start(TreeLink* tree, GroupFusion groups, const DeviceOptions& devices) {
    devices_ = devices.devices;
    one_device_ = devices.wanted != GpuOperations::staged;
    tree_ = tree;
    fuses_groups_ = groups == GroupFusion::with_all;
  }

  /// Refuses submissions from now on. False when it did already.
  bool close() { return !closed_.exchange(true); }

  /// Fails: invalid_argument (also: this rank is no member), not_found (set), duplicate,
  /// resource_exhausted, peer_lost.
  Result<TensorHandle> declare(SetId set, std::string_view name, const Signature& signature,
                               const GroupName& group);

  /// Fails: duplicate, invalid_argument, not_found, peer_lost, shut_down, resource_exhausted.
  Result<Operation*> submit(const SetSubmission& submission);

  /// All of them or, when one fails, none. Fails: as submit.
  Status submit_all(std::span<const SetSubmission> submissions,
                    std::vector<Operation*>& operations);

 private:
  /// Threads that a mark must wake now.
  enum class Urgency { none, peers, everybody };

  /// Fails: shut_down, after close(), whatever other ranks have done since.
  Status check_open() const;
  /// The set, if it exists and this rank is a member. Fails: not_found, invalid_argument.
  Result<ProcessSet*> own_set(SetId id) const;
  /// Does what can fail: afterwards the operation is claimed, and launch() or a release follows.
  Result<Operation*> prepare(const SetSubmission& submission, ProcessSet*& own);
  /// Says on which device and behind which event the operation begins. Fails: unavailable,
  /// not_found, invalid_argument, unsupported, io.
  Status attach_device(ProcessSet& own, const Submission& given, Operation& operation) const;
  Status claim(ProcessSet& own, const SetSubmission& submission, Operation& operation) const;
  void launch(const Submission& given, Operation& operation, ProcessSet& own, std::uint64_t ticks);
  /// Puts ready tensors into entries, in a set on one host.
  void cut(Board& board, Urgency urgency, std::uint64_t ticks);
  /// For a tensor that is complete on this host, in a set with members on others.
  void tell_other_hosts(ProcessSet& own, Urgency urgency);
  /// `ticks`: now, of timeline/ticks.hpp.
  Urgency urgency_of(Board& board, std::uint64_t bytes, std::uint64_t ticks) const;
  HostMemory& host_;
  ProcessSets& sets_;
  OperationTable& operations_;
  StallMonitor& stalls_;
  CallNotes& calls_;
  ProgressDriver& driver_;
  const bool by_processor_ = timeline::counts_by_processor();
  const double ticks_per_ns_;
  Devices* devices_ = nullptr;  ///< Null: all tensors are in host memory.
  bool one_device_ = true;      ///< A rank's tensors of a set are on one device.
  TreeLink* tree_ = nullptr;
  bool fuses_groups_ = true;  ///< With other tensors.
  std::atomic<bool> closed_{false};
};

}  // namespace horo::runtime
