// SPDX-License-Identifier: Apache-2.0
// What a leader needs of its host: real boards in a job, simulated ones in runtime/sim.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/coordinator/tree/wire.hpp"

namespace horo::runtime::tree {

/// A tensor that every member on this host has marked, by its number on this host.
struct Completed {
  TensorId id;
  bool changed = false;  ///< Somebody's signature is new or not what was agreed last, or somebody
                         ///< has joined instead.
};

/// An entry in this host's numbers; what it points to lives during the call.
struct HostEntry {
  LogKind kind = LogKind::work;
  std::span<const TensorId> ids;
  std::span<const std::uint64_t> rows;
  std::string_view text;
  const RankRanges* ranks = nullptr;
};

/// This host's share of one process set's log. Thread: the leader's.
class HostLog {
 public:
  HostLog() = default;
  virtual ~HostLog() = default;
  HostLog(const HostLog&) = delete;
  HostLog& operator=(const HostLog&) = delete;

  /// Appends what has been completed since the last call to `out`.
  virtual void take_completed(std::vector<Completed>& out) = 0;

  /// What the members on this host say of a completed tensor.
  virtual Declaration describe(TensorId id) = 0;

  /// The number of a tensor that others agreed on while all members here had joined, for the next
  /// entry that is published; none while there is no room, as publish().
  virtual Result<std::optional<TensorId>> define(std::string_view name,
                                                 const Signature& signature) = 0;

  /// Members on this host that have joined since the last call.
  virtual RankRanges take_joined() = 0;

  /// Members on this host that have begun to leave the set since the last call.
  virtual RankRanges take_leaving() = 0;

  /// Appends an entry; false when there is no room, and it is tried again at the next news.
  virtual Result<bool> publish(const HostEntry& entry) = 0;

  /// How many entries have been run here.
  virtual std::uint64_t done() const = 0;
};

/// Knows why tensors do not complete.
class Examiner {
 public:
  Examiner() = default;
  virtual ~Examiner() = default;
  Examiner(const Examiner&) = delete;
  Examiner& operator=(const Examiner&) = delete;

  /// What this host knows; `lacking` for each name of the question. Nothing: the host's members are
  /// not in the set yet.
  virtual std::optional<Answer> examine(const Question& question) {
    return Answer{.lacking = std::vector<Lacking>(question.names.size())};
  }

  /// At the root: what all hosts know. The loss that ends the job for it, if it has to end.
  virtual std::optional<Loss> conclude(const Question& /*question*/, const Answer& /*answer*/) {
    return std::nullopt;
  }
};

/// What concerns all process sets of a host. Thread: the leader's.
class HostState : public Examiner {
 public:
  /// Why this host's boards are poisoned, if they are.
  virtual std::optional<Loss> loss() = 0;

  /// Poisons the boards of this host and wakes everybody; the first call counts.
  virtual void lose(const Loss& loss) = 0;
};

}  // namespace horo::runtime::tree
