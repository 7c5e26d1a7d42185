// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "runtime/board/board.hpp"
#include "runtime/engine/agreement/agreement.hpp"
#include "runtime/engine/operations/recording.hpp"

namespace horo::runtime {

/// A set with members on several hosts, as its engine needs to know it.
struct SpanningSet {
  std::vector<Rank> ranks;     ///< All members, ascending.
  std::function<void()> look;  ///< On the leader: looks at the board. Thread: any. Else empty.
  /// On the root of the tree: has all hosts change the tuning. Thread: any. Elsewhere it does
  /// nothing or is empty.
  std::function<void(const Tuning&)> change_tuning;
  WhyPath path_reason;  ///< For the timeline; empty: not known.
};

/// Members are on several hosts: their leaders agree on entries, and the leader of this host
/// publishes them here. A backend between hosts moves the data.
class SpanningAgreement final : public Agreement {
 public:
  SpanningAgreement(Board& board, SpanningSet set);

  int position_of(Rank rank) const override;

  Contribution contribute(TensorId id, LocalTensor& mine, const Signature& signature,
                          const Submission& given, Operation& operation) override;

  /// Other hosts must hear of the join in any case.
  bool join(TensorId id) override {
    board_.marks().join(id);
    return true;
  }

  bool call_leader() override;

  bool has_news() const override { return set_.look && board_.leader_port()->needs_leader(); }

  bool advance() override { return board_.leader_port()->needs_leader() && call_leader(); }

  void entries_done() override;

  void moved() override {}

  /// The root keeps the change until the log has room.
  bool change_tuning(const Tuning& tuning) override;

  /// The log says when a member has left, at one place for all hosts.
  std::optional<Rank> find_departed(std::uint64_t /*begun*/, bool /*active*/) override {
    return std::nullopt;
  }

  void leave() override { board_.leader_port()->leave(); }

 private:
  /// Puts the input of a small sum beside the mark, from where the leader takes it.
  Contribution bring(TensorId id, const Signature& signature, const Submission& given);

  Board& board_;
  const SpanningSet set_;
};

}  // namespace horo::runtime
