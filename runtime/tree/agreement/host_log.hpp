// SPDX-License-Identifier: Apache-2.0
// The interfaces through which a leader sees its host: real boards in a job, simulated ones in
// runtime/simulator.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/tree/frames/frames.hpp"

namespace horo::runtime::tree {

/// A tensor that every member on this host has marked, by its number on this host.
struct Completed {
  TensorId id;
  bool changed = false;  ///< A rank's signature is not the one agreed last, or a rank has
                         ///< joined instead.
};

/// An entry in this host's numbers; what it points to lives during the call.
struct HostEntry {
  LogKind kind = LogKind::work;
  std::span<const TensorId> ids;
  std::span<const std::uint64_t> rows;
  std::span<const std::string> inputs;
  std::string_view text;
  const RankRanges* ranks = nullptr;
  Tuning tuning;
  std::uint64_t place = 0;       ///< HostLog::take_place() has returned it.
  std::uint64_t next_place = 0;  ///< The set's next entry that waits and has one has this.
};

/// The rank that submitted a tensor last, in a part of the job.
struct LastSubmission {
  Rank rank;
  Duration ago{};
};

/// This host's share of one process set's log. Thread: the leader's.
class HostLog {
 public:
  HostLog() = default;
  virtual ~HostLog() = default;
  HostLog(const HostLog&) = delete;
  HostLog& operator=(const HostLog&) = delete;

  /// Appends the tensors that were completed since the last call to `out`.
  virtual void take_completed(std::vector<Completed>& out) = 0;

  /// The member on this host that submitted a completed tensor last.
  virtual LastSubmission last_submission(TensorId id) = 0;

  /// At the root, while HostState::wants_arrivals(): a tensor that is about to be in an entry was
  /// submitted last by these ranks of other hosts. There is one for each of the root's children
  /// that has members.
  virtual void show_arrivals(TensorId id, std::span<const LastSubmission> others) = 0;

  /// The signatures that the members on this host declare for a completed tensor.
  virtual Declaration describe(TensorId id) = 0;

  /// The inputs of the members here for a completed tensor, one behind the other. None: they are
  /// not to be carried.
  virtual std::optional<std::string> inputs(TensorId id) = 0;

  /// The number of a tensor that others agreed on while all members here had joined, for the next
  /// entry that is published; none while there is no room, as publish().
  virtual Result<std::optional<TensorId>> define(std::string_view name,
                                                 const Signature& signature) = 0;

  /// The place, among all of this host that start on devices, of an entry whose first tensor is
  /// `first`; 0: it is in host memory. Called when the entry has come down.
  virtual std::uint64_t take_place(TensorId first) = 0;

  /// Members on this host that have joined since the last call.
  virtual RankRanges take_joined() = 0;

  /// Members on this host that have begun to leave the set since the last call.
  virtual RankRanges take_leaving() = 0;

  /// Appends an entry; false when there is no room, and it is tried again at the next news.
  virtual Result<bool> publish(const HostEntry& entry) = 0;

  /// How many entries have been run here.
  virtual std::uint64_t done() const = 0;
};

/// Finds out why tensors do not complete. Thread: the leader's.
class StallExaminer {
 public:
  StallExaminer() = default;
  virtual ~StallExaminer() = default;
  StallExaminer(const StallExaminer&) = delete;
  StallExaminer& operator=(const StallExaminer&) = delete;

  /// This host's knowledge, with one entry of `lacking` for each name of the question. Nothing: the
  /// host's members have not connected the set yet.
  virtual std::optional<StallAnswer> examine(const StallQuestion& question) = 0;

  /// At the root: hears what all hosts know. Returns the loss that ends the job, if it has to end.
  virtual std::optional<Loss> conclude(const StallQuestion& question,
                                       const StallAnswer& answer) = 0;
};

/// The state of a host that concerns all its process sets. Thread: the leader's.
class HostState {
 public:
  HostState() = default;
  virtual ~HostState() = default;
  HostState(const HostState&) = delete;
  HostState& operator=(const HostState&) = delete;

  /// Why this host's boards are poisoned, if they are.
  virtual std::optional<Loss> loss() = 0;

  /// Poisons the boards of this host and wakes its ranks; only the first call has an effect.
  virtual void lose(const Loss& loss) = 0;

  /// At the root: a trace shows which ranks submit last (HostLog::show_arrivals).
  virtual bool wants_arrivals() = 0;

  /// Null: this host cannot say why tensors do not complete.
  virtual StallExaminer* examiner() = 0;
};

}  // namespace horo::runtime::tree
