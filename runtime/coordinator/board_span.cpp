// SPDX-License-Identifier: Apache-2.0
// A set with members on other hosts: what its leader here does with the board in place of cutting.
#include <algorithm>
#include <cstring>

#include "runtime/coordinator/board.hpp"

namespace horo::runtime {

bool Board::needs_leader() const {
  if (body_->leaves.load(std::memory_order_seq_cst) !=
      body_->leaves_taken.load(std::memory_order_seq_cst))
    return true;
  const bool waiting = body_->entries_wait.load(std::memory_order_seq_cst) != 0;
  if (waiting && in_flight() < params_.depth) return true;
  const auto led = ranks_[0].cursor.load(std::memory_order_seq_cst);
  if (led != body_->done_taken.load(std::memory_order_relaxed)) return true;
  // While entries are to be run what becomes ready waits, and travels together.
  if (waiting || body_->tail.load(std::memory_order_seq_cst) - led >= params_.depth) return false;
  return has_ready() || body_->joins_told.load(std::memory_order_seq_cst) !=
                            body_->joins_taken.load(std::memory_order_seq_cst);
}

void Board::wake_leader() {
  constexpr LocalRank kLeader{0};
  if (host_.me() == kLeader) return;
  // The same order as in wake(): what is new was stored before this looks at the leader.
  auto& leader = host_.rank(kLeader);
  const auto state = leader.drive.load(std::memory_order_seq_cst);
  if (state == drive::kAwake) return;
  if (state == drive::kAsleep &&
      (leader.interest.load(std::memory_order_seq_cst) & interest::kEntries) == 0)
    return;
  ring(host_.slot(kLeader));
}

void Board::leave() {
  if (me_ >= 0) return leave(me_);
  for (int m = 0; m < local_size(); ++m) leave(m);
}

void Board::leave(int member) {
  const auto m = static_cast<std::size_t>(member);
  const auto bit = std::uint64_t{1} << (m % 64);
  if ((body_->leaving[m / 64].fetch_or(bit, std::memory_order_seq_cst) & bit) != 0) return;
  body_->leaves.fetch_add(1, std::memory_order_seq_cst);
  wake_leader();
}

std::uint64_t Board::take_done() {
  const auto done = ranks_[0].cursor.load(std::memory_order_seq_cst);
  body_->done_taken.store(done, std::memory_order_relaxed);
  return done;
}

void Board::take_ready(std::vector<TensorId>& out) {
  auto head = body_->ready_head.load(std::memory_order_relaxed);
  const auto before = out.size();
  for (;; ++head) {
    auto& cell = ready_[head & (params_.capacity - 1)];
    const auto value = cell.load(std::memory_order_acquire);
    if (value == 0 || value > params_.capacity) break;
    cell.store(0, std::memory_order_relaxed);
    const TensorId id{value - 1};
    tensor(id).signature.store(signature_number(id, first_marked(id)), std::memory_order_release);
    out.push_back(id);
  }
  if (out.size() == before) return;
  body_->ready_head.store(head, std::memory_order_seq_cst);
  body_->ready_bytes.store(0, std::memory_order_relaxed);
  body_->first_ready.store(0, std::memory_order_relaxed);
}

bool Board::is_partial(TensorId id) const {
  return arrivals::marks(tensor(id).arrivals.load(std::memory_order_acquire)) < params_.local_size;
}

bool Board::is_changed(TensorId id) const {
  return arrivals::changed(tensor(id).arrivals.load(std::memory_order_acquire)) != 0;
}

std::vector<Rank> Board::take_new(
    std::array<std::uint64_t, kMaskWords>& seen,
    const std::array<std::atomic<std::uint64_t>, kMaskWords>& now) const {
  std::vector<Rank> fresh;
  for (int m = 0; m < local_size(); ++m) {
    const auto word = static_cast<std::size_t>(m) / 64;
    const auto bit = std::uint64_t{1} << (m % 64);
    if ((now[word].load(std::memory_order_seq_cst) & ~seen[word] & bit) == 0) continue;
    seen[word] |= bit;
    fresh.push_back(global_rank(m));
  }
  return fresh;
}

bool Board::ready_is_settled() const {
  const auto tail = body_->ready_tail.load(std::memory_order_seq_cst);
  for (auto head = body_->ready_head.load(std::memory_order_relaxed); head != tail; ++head) {
    if (ready_[head & (params_.capacity - 1)].load(std::memory_order_seq_cst) == 0) return false;
  }
  return true;
}

std::vector<Rank> Board::take_joined() {
  auto seen = joined_seen_;
  auto fresh = take_new(seen, body_->joined_told);
  // Whoever joined has made tensors ready before; a slow rank may still hold up the list.
  if (!ready_is_settled()) return {};
  joined_seen_ = seen;
  body_->joins_taken.fetch_add(static_cast<std::uint32_t>(fresh.size()), std::memory_order_seq_cst);
  return fresh;
}

std::vector<Rank> Board::take_leaving() {
  auto seen = leaving_seen_;
  auto fresh = take_new(seen, body_->leaving);
  if (!ready_is_settled()) return {};
  leaving_seen_ = seen;
  body_->leaves_taken.fetch_add(static_cast<std::uint32_t>(fresh.size()),
                                std::memory_order_seq_cst);
  return fresh;
}

bool Board::publish(const AgreedEntry& agreed) {
  if (in_flight() >= params_.depth) {
    // Announce, then look again: whoever makes room does so first and looks for this then.
    body_->entries_wait.store(1, std::memory_order_seq_cst);
    if (in_flight() >= params_.depth) return false;
  }
  body_->entries_wait.store(0, std::memory_order_seq_cst);
  LogSlot entry{};
  entry.kind = agreed.kind;
  entry.placement = Placement::direct;
  entry.count = static_cast<std::uint32_t>(agreed.ids.size());
  scratch_.clear();
  for (const auto id : agreed.ids) {
    scratch_.push_back(id.value());
    const auto word = tensor(id).arrivals.load(std::memory_order_acquire);
    if (arrivals::direct(word) != params_.local_size) entry.placement = Placement::staged;
    entry.partial = entry.partial || is_partial(id);
    entry.bytes += agreed_signature(id).bytes();
  }
  const auto start = scratch_.size();
  switch (agreed.kind) {
    case EntryKind::mismatch:
      entry.partial = false;
      scratch_.resize(start + 1 + (agreed.text.size() + 7) / 8);
      scratch_[start] = agreed.text.size();
      std::memcpy(scratch_.data() + start + 1, agreed.text.data(), agreed.text.size());
      break;
    case EntryKind::join:
    case EntryKind::left:
      entry.partial = false;
      scratch_.push_back(static_cast<std::uint64_t>(agreed.rank.value()));
      break;
    case EntryKind::work:
      if (!entry.partial) {
        scratch_.insert(scratch_.end(), agreed.rows.begin(), agreed.rows.end());
        break;
      }
      scratch_.resize(start + agreed.ids.size() * kSignatureWords);
      for (std::size_t i = 0; i < agreed.ids.size(); ++i) {
        std::memcpy(scratch_.data() + start + i * kSignatureWords, &agreed_signature(agreed.ids[i]),
                    sizeof(Signature));
      }
      break;
  }
  if (agreed.kind == EntryKind::join) joined_seen_ = {};
  publish(entry, scratch_);
  if (agreed.kind == EntryKind::left) body_->closed.store(1, std::memory_order_release);
  return true;
}

}  // namespace horo::runtime
