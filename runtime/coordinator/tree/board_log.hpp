// SPDX-License-Identifier: Apache-2.0
// A leader's view of its host's real memory: one BoardLog per process set that spans hosts, one
// BoardState per host.
#pragma once

#include <string>
#include <vector>

#include "runtime/coordinator/board.hpp"
#include "runtime/coordinator/host_memory.hpp"
#include "runtime/coordinator/tree/host_log.hpp"

namespace horo::runtime::tree {

/// Thread: the leader's, one at a time.
class BoardLog final : public HostLog {
 public:
  /// `board` spans hosts, is that of the host's first rank, and outlives this.
  explicit BoardLog(Board& board) : board_(board) {}

  void take_completed(std::vector<Completed>& out) override;
  Declaration describe(TensorId id) override;
  Result<std::optional<TensorId>> define(std::string_view name,
                                         const Signature& signature) override;
  RankRanges take_joined() override;
  RankRanges take_leaving() override;
  Result<bool> publish(const HostEntry& entry) override;
  std::uint64_t done() const override;

 private:
  Board& board_;
  std::vector<TensorId> ready_;
  std::vector<TensorId> join_;  ///< The set's join tensor, once all members here have joined.
};

class BoardState final : public HostState {
 public:
  explicit BoardState(HostMemory& host) : host_(host) {}

  /// Who is asked about stalls from now on; outlives this.
  void ask(Examiner& examiner) { examiner_ = &examiner; }

  std::optional<Loss> loss() override;
  void lose(const Loss& loss) override;
  std::optional<Answer> examine(const Question& question) override;
  std::optional<Loss> conclude(const Question& question, const Answer& answer) override;

 private:
  HostMemory& host_;
  Examiner* examiner_ = nullptr;
};

}  // namespace horo::runtime::tree
