// SPDX-License-Identifier: Apache-2.0
// Agreement: the ready list, cutting and reading the log; marks are in board_marks.cpp.
#include <algorithm>
#include <cstring>
#include <map>

#include "runtime/coordinator/board.hpp"
#include "runtime/fusion/key.hpp"

namespace horo::runtime {

namespace {

/// Tensors that also move alike fuse on one host.
std::uint64_t fuse_key(const Signature& s, Placement placement, bool partial) {
  const auto key = fusion_key(s);
  const auto alike = static_cast<std::uint64_t>(placement) * 2 + (partial ? 1 : 0);
  return key == 0 ? 0 : (key ^ alike << 1U) | 1U;
}

}  // namespace

bool Board::has_ready() const {
  const auto head = body_->ready_head.load(std::memory_order_seq_cst);
  return body_->pending_count.load(std::memory_order_seq_cst) != 0 ||
         (head != body_->ready_tail.load(std::memory_order_seq_cst) &&
          ready_[head & (params_.capacity - 1)].load(std::memory_order_seq_cst) != 0);
}

bool Board::can_cut() const {
  return !spans() && has_ready() && in_flight() < params_.depth &&
         body_->combiner.load(std::memory_order_seq_cst) == 0;
}

std::uint64_t Board::in_flight() const {
  const auto tail = body_->tail.load(std::memory_order_relaxed);
  auto least = tail;
  for (std::uint32_t r = 0; r < params_.local_size; ++r) {
    if (rank_slot(static_cast<int>(r)).state.load(std::memory_order_relaxed) == RankState::detached)
      continue;
    least = std::min(least, ranks_[r].cursor.load(std::memory_order_seq_cst));
  }
  return tail - least;
}

int Board::first_marked(TensorId id) const {
  int member = 0;
  while (member + 1 < local_size() && !has_marked(id, member)) ++member;
  return member;
}

bool Board::resolve(TensorId id, TensorSlot& slot, bool changed) {
  const auto first = signature_number(id, first_marked(id));
  if (changed) {
    if (!same_group(id)) return false;
    for (int r = 0; r < local_size(); ++r) {
      if (!has_marked(id, r) || signature_number(id, r) == first) continue;
      if (!compatible(signature_of(first), signature(id, r))) return false;
    }
  }
  slot.signature.store(first, std::memory_order_release);
  return true;
}

PendingSlot Board::inspect(TensorId id) {
  auto& slot = tensor(id);
  const auto word = slot.arrivals.load(std::memory_order_acquire);
  const auto n = params_.local_size;
  PendingSlot pending{.id = id.value(),
                      .placement = Placement::staged,
                      .kind = EntryKind::work,
                      .partial = arrivals::marks(word) < n,
                      .bytes = 0,
                      .fuse_key = 0};
  if (!resolve(id, slot, arrivals::changed(word) != 0)) {
    pending.kind = EntryKind::mismatch;
    return pending;
  }
  const auto& s = agreed_signature(id);
  if (pending.partial && !possible_with_joined(s)) {
    pending.kind = EntryKind::mismatch;
    return pending;
  }
  if (s.kind == Kind::join) pending.kind = EntryKind::join;
  pending.bytes = s.bytes();
  if (first_extent_is_free(s.kind)) {
    pending.bytes = 0;
    for (int r = 0; r < local_size(); ++r) pending.bytes += signature(id, r).bytes();
  }
  if (n == 1) {
    pending.placement = Placement::alone;
  } else if (pending.partial) {
    pending.placement = Placement::staged;
  } else if (arrivals::in_line(word) == n) {
    pending.placement = Placement::in_marks;
  } else if (arrivals::direct(word) == n) {
    pending.placement = Placement::direct;
  }
  pending.fuse_key = fuse_key(s, pending.placement, pending.partial);
  return pending;
}

bool Board::drain_ready() {
  auto head = body_->ready_head.load(std::memory_order_relaxed);
  auto count = body_->pending_count.load(std::memory_order_relaxed);
  bool any = false;
  while (count < params_.capacity) {
    auto& cell = ready_[head & (params_.capacity - 1)];
    const auto value = cell.load(std::memory_order_acquire);
    if (value == 0 || value > params_.capacity) break;
    cell.store(0, std::memory_order_relaxed);
    ++head;
    pending_[count++] = inspect(TensorId{value - 1});
    any = true;
  }
  if (any) {
    body_->pending_count.store(count, std::memory_order_seq_cst);
    body_->ready_head.store(head, std::memory_order_seq_cst);
    body_->ready_bytes.store(0, std::memory_order_relaxed);
    body_->first_ready.store(0, std::memory_order_relaxed);
  }
  return any;
}

std::string Board::group_text(GroupRef group) const {
  const auto name = group_name(group);
  if (name.empty()) return "none";
  return fmt::format("'{}' of {}", name.substr(0, 200), group.size);
}

std::string Board::mismatch_text(TensorId id) const {
  // The first value seen, who has it, and the first rank that differs.
  const auto& first = signature(id, first_marked(id));
  Difference found;
  // First the group: where it differs its other members may never be complete, which callers must
  // know.
  if (!same_group(id)) found.what = "group";
  for (int r = 0; r < local_size() && found.what.empty(); ++r) {
    if (has_marked(id, r)) found = difference(first, signature(id, r));
  }
  std::string joined;
  std::map<std::string, std::string> ranks_by_value;
  const auto add = [this](std::string& ranks, int member) {
    if (ranks.size() < 120)
      ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", global_rank(member));
  };
  for (int r = 0; r < local_size(); ++r) {
    if (!has_marked(id, r)) {
      add(joined, r);
      continue;
    }
    if (found.what == "group") {
      add(ranks_by_value[group_text(group_of(id, r))], r);
      continue;
    }
    const auto d = difference(first, signature(id, r));
    if (d.what.empty() || d.what == found.what)
      add(ranks_by_value[d.what == found.what ? d.b : found.a], r);
  }
  const auto name = tensor_name(id).substr(0, 400);
  const auto plural = [](const std::string& ranks) {
    return ranks.find(',') != std::string::npos ? "s" : "";
  };
  if (found.what.empty()) {
    return joined_text(name, first, joined, joined.find(',') != std::string::npos ? 2 : 1);
  }
  std::string text = fmt::format("tensor '{}': ranks disagree about the {}:", name, found.what);
  const char* separator = " ";
  for (const auto& [value, ranks] : ranks_by_value) {
    text += fmt::format("{}{} on rank{} {}", separator, value, plural(ranks), ranks);
    separator = ", ";
    if (text.size() > 1500) break;
  }
  return text;
}

void Board::publish(LogSlot entry, std::span<const std::uint64_t> words) {
  const auto room = layout_.word_count;
  auto at = body_->next_word;
  if (at % room + words.size() > room) at += room - at % room;  // Entries do not wrap.
  std::memcpy(words_ + at % room, words.data(), words.size_bytes());
  body_->next_word = at + words.size();
  const auto tail = body_->tail.load(std::memory_order_relaxed);
  entry.sequence = tail + 1;
  entry.first_word = at % room;
  entry.words = static_cast<std::uint32_t>(words.size());
  log_[tail % kLogSlots] = entry;
  for (std::uint32_t i = 0; i < entry.count; ++i) {
    auto& slot = tensors_[words[i]];
    slot.members.store(0, std::memory_order_relaxed);
    for (std::size_t w = 1; w < mask_words(); ++w)
      marked(TensorId{static_cast<std::uint32_t>(words[i])}, w).store(0, std::memory_order_relaxed);
    slot.generation.fetch_add(1, std::memory_order_relaxed);
    slot.last_entry.store(tail + 1, std::memory_order_relaxed);
    slot.held.store(0, std::memory_order_release);
    slot.arrivals.store(0, std::memory_order_relaxed);
  }
  if (entry.kind == EntryKind::join) {
    for (auto& members : body_->joined) members.store(0, std::memory_order_relaxed);
    body_->join_count.store(0, std::memory_order_relaxed);
    for (auto& members : body_->joined_told) members.store(0, std::memory_order_relaxed);
    body_->joins_told.store(0, std::memory_order_relaxed);
    body_->joins_taken.store(0, std::memory_order_relaxed);
  }
  // One release for entry, words and cleared marks; seq_cst for the sleepers, see wake().
  body_->tail.store(tail + 1, std::memory_order_seq_cst);
}

void Board::cut_one() {
  const auto count = body_->pending_count.load(std::memory_order_relaxed);
  const std::size_t n = params_.local_size;
  // At most a depth's share of the word ring: ids, for an allgather a row count per rank, with
  // joined ranks a signature.
  const auto words_each = 1 + n + (pending_[0].partial ? kSignatureWords : 0);
  const auto most = std::max<std::size_t>(1, layout_.word_count / (2 * params_.depth) / words_each);
  const auto looked_at = std::min<std::size_t>(count, most);
  candidates_.clear();
  for (std::size_t i = 0; i < looked_at; ++i) {
    candidates_.push_back({.id = TensorId{pending_[i].id},
                           .bytes = pending_[i].bytes,
                           .fuse_key = pending_[i].fuse_key});
  }
  plan_fusion(candidates_, {.threshold_bytes = params_.fusion_threshold, .most_tensors = most},
              taken_);
  const auto first = pending_[0];
  scratch_.clear();
  LogSlot entry{};
  entry.kind = first.kind;
  entry.placement = first.placement;
  entry.partial = first.partial && first.kind == EntryKind::work;
  entry.count = static_cast<std::uint32_t>(taken_.size());
  for (const auto i : taken_) {
    scratch_.push_back(pending_[i].id);
    entry.bytes += pending_[i].bytes;
  }
  const TensorId first_id{first.id};
  if (first.kind == EntryKind::mismatch) {
    const auto text = mismatch_text(first_id);
    const auto start = scratch_.size();
    scratch_.resize(start + 1 + (text.size() + 7) / 8);
    scratch_[start] = text.size();
    std::memcpy(scratch_.data() + start + 1, text.data(), text.size());
  } else if (first.kind == EntryKind::join) {
    scratch_.push_back(static_cast<std::uint64_t>(body_->last_joined.load()));
  } else if (entry.partial) {
    const auto start = scratch_.size();
    scratch_.resize(start + taken_.size() * kSignatureWords);
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      std::memcpy(scratch_.data() + start + i * kSignatureWords,
                  &agreed_signature(TensorId{pending_[taken_[i]].id}), sizeof(Signature));
    }
  } else if (agreed_signature(first_id).kind == Kind::allgather) {
    for (const auto i : taken_) {
      for (int r = 0; r < local_size(); ++r) {
        scratch_.push_back(
            static_cast<std::uint64_t>(signature(TensorId{pending_[i].id}, r).extents[0]));
      }
    }
  }
  std::uint32_t kept = 0;
  std::size_t next_taken = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (next_taken < taken_.size() && taken_[next_taken] == i) {
      ++next_taken;
    } else {
      pending_[kept++] = pending_[i];
    }
  }
  body_->pending_count.store(kept, std::memory_order_seq_cst);
  publish(entry, scratch_);
}

bool Board::cut(std::uint64_t ticks) {
  bool published = false;
  if (spans()) return published;
  while (has_ready()) {
    if (cycle_ != 0) {
      const auto since = body_->first_ready.load(std::memory_order_relaxed);
      if (since != 0 && ticks < since + cycle_) return published;
    }
    if (in_flight() >= params_.depth) return published;
    std::uint32_t free = 0;
    if (!body_->combiner.compare_exchange_strong(free, static_cast<std::uint32_t>(me_) + 1,
                                                 std::memory_order_seq_cst)) {
      return published;  // The holder looks again after it lets go.
    }
    drain_ready();
    while (body_->pending_count.load(std::memory_order_relaxed) != 0 &&
           in_flight() < params_.depth) {
      cut_one();
      published = true;
      drain_ready();
    }
    body_->combiner.store(0, std::memory_order_seq_cst);
  }
  return published;
}

Result<std::optional<Entry>> Board::next(std::uint64_t cursor) {
  if (body_->tail.load(std::memory_order_seq_cst) <= cursor) return std::optional<Entry>{};
  const LogSlot slot = log_[cursor % kLogSlots];
  const auto room = layout_.word_count;
  const auto broken = [&](std::string_view what) {
    return fail(Errc::protocol, "log entry {} of the board makes no sense: {}", cursor, what);
  };
  if (slot.sequence != cursor + 1) return broken("sequence number");
  if (slot.words > room || slot.first_word > room - slot.words || slot.count > slot.words ||
      (slot.count == 0 && slot.kind != EntryKind::left))
    return broken("extent");
  Entry entry{.kind = slot.kind, .placement = slot.placement, .bytes = slot.bytes};
  const std::uint64_t* words = words_ + slot.first_word;
  entry.ids = {words, slot.count};
  for (const auto id : entry.ids) {
    if (id >= body_->tensor_count.load(std::memory_order_acquire)) return broken("tensor id");
  }
  const std::size_t rest = slot.words - slot.count;
  if (slot.kind == EntryKind::mismatch) {
    if (rest == 0 || words[slot.count] > (rest - 1) * 8) return broken("text");
    entry.text = {reinterpret_cast<const char*>(words + slot.count + 1), words[slot.count]};
  } else if (slot.kind == EntryKind::join || slot.kind == EntryKind::left) {
    if (rest != 1) return broken("rank");
    (slot.kind == EntryKind::join ? entry.last_joined : entry.left) =
        Rank{static_cast<int>(words[slot.count])};
  } else if (slot.kind != EntryKind::work || slot.placement > Placement::staged) {
    return broken("kind");
  } else if (slot.partial) {
    entry.signatures = {words + slot.count, rest};
    if (rest != slot.count * kSignatureWords) return broken("signatures");
  } else {
    entry.rows = {words + slot.count, rest};
    // How many members there are on other hosts, the engine knows.
    if (rest != 0 && !spans() && rest != slot.count * params_.local_size) return broken("rows");
  }
  return std::optional(entry);
}

void Board::advance(std::uint64_t cursor) {
  ranks_[me_].cursor.store(cursor, std::memory_order_seq_cst);
}

}  // namespace horo::runtime
