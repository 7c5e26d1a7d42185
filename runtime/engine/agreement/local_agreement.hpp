// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/board/board.hpp"
#include "runtime/engine/agreement/agreement.hpp"

namespace horo::runtime {

/// All members are on this host: any of them makes entries of what is ready, and reads its peers'
/// data in shared memory.
class LocalAgreement final : public Agreement {
 public:
  LocalAgreement(Board& board, OperationTable& operations);

  int position_of(Rank rank) const override { return board_.region().member_of(rank); }

  Contribution contribute(TensorId id, LocalTensor& mine, const Signature& signature,
                          const Submission& given, Operation& operation) override;

  bool join(TensorId id) override { return board_.marks().join(id); }

  bool call_leader() override { return false; }

  bool has_news() const override { return false; }

  bool advance() override;

  void entries_done() override {}

  void moved() override { advance(); }

  bool change_tuning(const Tuning& tuning) override;

  std::optional<Rank> find_departed(std::uint64_t begun, bool active) override;

  void leave() override {}

 private:
  void write_splits(TensorId id, const Signature& signature, const Submission& given);
  void borrow(LocalTensor& mine, const Signature& signature, Contribution& contribution);
  void poison_if_share_is_lost(std::uint64_t begun);

  Board& board_;
  OperationTable& operations_;
  std::uint32_t departures_seen_ = 0;
};

}  // namespace horo::runtime
