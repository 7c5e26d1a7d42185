// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/agreement/local_agreement.hpp"

#include <cstring>

#include "base/race_point.hpp"
#include "timeline/record/ticks.hpp"

namespace horo::runtime {

LocalAgreement::LocalAgreement(Board& board, OperationTable& operations)
    : Agreement(board.region().local_size(), board.region().me()),
      board_(board),
      operations_(operations) {}

bool LocalAgreement::advance() {
  if (!board_.ready().has_ready()) return false;
  const auto now =
      board_.tuning().cycle_ns() == 0 ? 0 : timeline::ticks_now(timeline::counts_by_processor());
  if (!board_.cutter()->cut(now)) return false;
  race_point();
  board_.bells().wake(interest::kEntries);
  return true;
}

bool LocalAgreement::change_tuning(const Tuning& tuning) {
  const auto now = timeline::ticks_now(timeline::counts_by_processor());
  const bool changed = board_.cutter()->change_tuning(tuning, now);
  board_.bells().wake(interest::kEntries);  // Without room for the change it may have cut others.
  return changed;
}

void LocalAgreement::write_splits(TensorId id, const Signature& signature,
                                  const Submission& given) {
  const auto& marks = board_.marks();
  const auto n = static_cast<std::uint64_t>(size());
  auto* const rows = board_.directory().memory().splits(id, position(), marks.generation(id));
  for (std::uint64_t r = 0; r < n; ++r) {
    rows[r] =
        given.splits.empty() ? signature.rows() / n : static_cast<std::uint64_t>(given.splits[r]);
  }
}

Contribution LocalAgreement::contribute(TensorId id, LocalTensor& mine, const Signature& signature,
                                        const Submission& given, Operation& /*operation*/) {
  const auto& s = signature;
  const auto& host = board_.region().host();
  const auto bytes = moves_nothing(s.kind) ? 0 : s.bytes();
  const bool reads =
      s.kind != Kind::broadcast || Rank{s.root} == board_.region().global_rank(position());
  const bool peers_write = s.kind == Kind::allreduce;
  if (s.kind == Kind::alltoall) write_splits(id, s, given);
  if (bytes == 0) return {.direct = true, .in_line = true};
  // Only the device can read it.
  if (s.memory == MemoryKind::device) return {};
  Contribution contribution;
  const auto generation = board_.marks().generation(id);
  auto* const slot = board_.directory().memory().payload(id, position(), generation, bytes);
  if (slot != nullptr) {
    if (reads) std::memcpy(slot, given.in, bytes);
    contribution.in_line = true;
  }
  if (size() == 1) return contribution;
  contribution.in_offset = reads ? host.offset_in_my_arena(given.in, bytes) : 0;
  contribution.out_offset = peers_write ? host.offset_in_my_arena(given.out, bytes) : 0;
  contribution.direct =
      (!reads || contribution.in_offset != 0) && (!peers_write || contribution.out_offset != 0);
  if (!contribution.direct && !contribution.in_line) borrow(mine, s, contribution);
  return contribution;
}

void LocalAgreement::borrow(LocalTensor& mine, const Signature& signature,
                            Contribution& contribution) {
  // The ranks of an Adasum move in step in any case, so nothing is gained.
  if (signature.op == ReduceOp::adasum && signature.kind == Kind::allreduce) return;
  const auto bytes = signature.bytes();
  mine.lent = operations_.lent().take(bytes);
  if (mine.lent == nullptr) return;
  operations_.lent().fill(mine.lent, mine.in, bytes);
  contribution.in_offset = board_.region().host().offset_in_my_arena(mine.lent, bytes);
  if (signature.kind == Kind::allreduce) contribution.out_offset = contribution.in_offset;
  contribution.direct = true;
}

std::optional<Rank> LocalAgreement::find_departed(std::uint64_t begun, bool active) {
  const auto& region = board_.region();
  const auto gone = region.host().body().gone.load(std::memory_order_seq_cst);
  // Departures that were seen before count too: entries that were ready then may begin later.
  if (gone == departures_seen_ && (gone == 0 || !active)) [[likely]]
    return std::nullopt;
  if (active) {
    poison_if_share_is_lost(begun);
    return std::nullopt;
  }
  // A rank detaches with no mark of its own left, so the log has all that it took part in. What
  // remains once this rank has read all of the log can never complete.
  if (board_.log().published() > begun) return std::nullopt;
  departures_seen_ = region.host().body().gone.load(std::memory_order_seq_cst);
  for (int m = 0; m < region.local_size(); ++m) {
    if (m != region.me() &&
        region.rank_slot(m).state.load(std::memory_order_seq_cst) == RankState::detached)
      return region.global_rank(m);
  }
  return std::nullopt;
}

void LocalAgreement::poison_if_share_is_lost(std::uint64_t begun) {
  // A joined rank takes part in entries that it has not submitted. If it detaches before all have
  // joined, no rank does its share of the entries that are begun.
  const auto& region = board_.region();
  for (int m = 0; m < region.local_size(); ++m) {
    if (region.rank_slot(m).state.load(std::memory_order_seq_cst) != RankState::detached ||
        region.area(m).cursor.load(std::memory_order_seq_cst) >= begun)
      continue;
    poison_board(region.host().board(),
                 {.rank = region.global_rank(m), .cause = LossCause::vanished}, "");
    return;
  }
}

}  // namespace horo::runtime
