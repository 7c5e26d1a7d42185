// SPDX-License-Identifier: Apache-2.0
// A leader's view of its host's real memory: one BoardLog per process set that spans hosts, one
// BoardState per host.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/board/board.hpp"
#include "runtime/host/host_memory.hpp"
#include "runtime/tree/agreement/host_log.hpp"

namespace horo::runtime::tree {

/// Thread: the leader's, one at a time.
class BoardLog final : public HostLog {
 public:
  /// `board` spans hosts, is that of the host's first rank, and outlives this.
  explicit BoardLog(Board& board) : board_(board), port_(*board.leader_port()) {}

  void take_completed(std::vector<Completed>& out) override;
  LastSubmission last_submission(TensorId id) override;
  void show_arrivals(TensorId id, std::span<const LastSubmission> others) override;
  Declaration describe(TensorId id) override;

  std::optional<std::string> inputs(TensorId id) override { return port_.inputs(id); }

  Result<std::optional<TensorId>> define(std::string_view name,
                                         const Signature& signature) override;

  std::uint64_t take_place(TensorId first) override { return port_.take_place(first); }

  RankRanges take_joined() override;
  RankRanges take_leaving() override;
  Result<bool> publish(const HostEntry& entry) override;
  std::uint64_t done() const override;

 private:
  Board& board_;
  LeaderPort& port_;
  std::vector<TensorId> ready_;
  std::vector<TensorId> join_;  ///< The set's join tensor, once all members here have joined.
};

class BoardState final : public HostState {
 public:
  explicit BoardState(HostMemory& host) : host_(host) {}

  /// `examiner` outlives this.
  void examine_by(StallExaminer& examiner) { examiner_ = &examiner; }

  std::optional<Loss> loss() override;
  void lose(const Loss& loss) override;

  bool wants_arrivals() override;

  StallExaminer* examiner() override { return examiner_; }

 private:
  HostMemory& host_;
  StallExaminer* examiner_ = nullptr;
};

}  // namespace horo::runtime::tree
