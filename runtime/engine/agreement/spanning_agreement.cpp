// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/spanning_agreement.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/tensor/carried_sum.hpp"

namespace horo::runtime {

namespace {

int position_in(const std::vector<Rank>& ranks, Rank rank) {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  return at != ranks.end() && *at == rank ? static_cast<int>(at - ranks.begin()) : -1;
}

}  // namespace

SpanningAgreement::SpanningAgreement(Board& board, SpanningSet set)
    : Agreement(static_cast<int>(set.ranks.size()),
                position_in(set.ranks, board.region().global_rank(board.region().me()))),
      board_(board),
      set_(std::move(set)) {}

int SpanningAgreement::position_of(Rank rank) const {
  return position_in(set_.ranks, rank);
}

Contribution SpanningAgreement::bring(TensorId id, const Signature& signature,
                                      const Submission& given) {
  const auto bytes = signature.bytes();
  auto* const place = board_.directory().memory().payload(id, board_.region().me(),
                                                          board_.marks().generation(id), bytes);
  if (place == nullptr) return {};
  std::memcpy(place, given.in, bytes);
  return {.in_line = true};
}

Contribution SpanningAgreement::contribute(TensorId id, LocalTensor& /*mine*/,
                                           const Signature& signature, const Submission& given,
                                           Operation& operation) {
  if (is_carried(signature, size())) return bring(id, signature, given);
  // Members on other hosts can read nothing here: an alltoall's splits are gathered later.
  if (signature.kind != Kind::alltoall) return {};
  const auto n = static_cast<std::uint64_t>(size());
  operation.splits.resize(n);
  for (std::uint64_t r = 0; r < n; ++r) {
    operation.splits[r] =
        given.splits.empty() ? signature.rows() / n : static_cast<std::uint64_t>(given.splits[r]);
  }
  return {};
}

bool SpanningAgreement::call_leader() {
  if (!set_.look) {
    board_.bells().wake_leader();
    return false;
  }
  set_.look();
  return true;
}

bool SpanningAgreement::change_tuning(const Tuning& tuning) {
  if (!set_.change_tuning) return false;
  set_.change_tuning(tuning);
  return true;
}

void SpanningAgreement::entries_done() {
  // Entries may wait for room in the log, and the leader counts what its first member has run.
  if (board_.region().me() == 0 || board_.leader_port()->needs_leader()) call_leader();
}

}  // namespace horo::runtime
