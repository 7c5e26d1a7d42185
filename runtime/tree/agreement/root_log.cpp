// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/root_log.hpp"

#include <algorithm>
#include <utility>

#include "runtime/tensor/fusion_key.hpp"
#include "runtime/tree/agreement/mismatch.hpp"

namespace horo::runtime::tree {

namespace {

constexpr std::size_t kMostNamesBytes = kMostPayload / 8;

/// Whether row counts may differ between ranks, so that every rank needs all of them.
bool has_rows(Kind kind) {
  return kind == Kind::allgather;
}

}  // namespace

RootLog::RootLog(SetId set, RankRanges members, const CutRules& rules)
    : set_(set), members_(std::move(members)), rules_(rules) {}

Status RootLog::add(SubtreeUpdate&& news, TimePoint now) {
  leave(news.leaving);
  if (!left_.empty()) return {};  // After an entry `left` the log has no more entries.
  if (pending_.empty()) pending_since_ = now;
  for (const auto& declaration : news.declared) HORO_TRY_STATUS(add(declaration));
  for (const auto id : news.ready) HORO_TRY_STATUS(add_ready(id, {}));
  for (auto& [number, inputs] : news.carried) HORO_TRY_STATUS(add_ready(number, std::move(inputs)));
  if (!news.joined.empty()) {
    joined_.add(news.joined);
    const auto& last = news.joined.ranges().back();
    joined_last_ = RankRanges::of(last.end() - 1, 1);
  }
  return {};
}

Status RootLog::add_ready(std::uint32_t number, std::string&& inputs) {
  // A relay passes on only numbers that it has seen defined.
  auto& tensor = *by_place_.at(place_of_number(number));
  // A rank that had joined in between agreed to an older signature, if ever: compare again.
  if (!tensor.uniform) return add({.name = tensor.name, .variants = {{std::nullopt, members_}}});
  add_pending({.tensor = &tensor,
               .error = {},
               .signature = *tensor.agreed.begin()->first,
               .whole = true,
               .inputs = std::move(inputs)});
  return {};
}

Result<Variants> RootLog::resolve(const Tensor& tensor, const Variants& variants) const {
  Variants resolved;
  for (const auto& [signature, ranks] : variants) {
    if (signature) {
      resolved[signature].add(ranks);
      continue;
    }
    int found = 0;
    for (const auto& [agreed, holders] : tensor.agreed) {
      const auto both = holders.intersection(ranks);
      if (both.empty()) continue;
      resolved[agreed].add(both);
      found += both.size();
    }
    if (found != ranks.size()) {
      return fail(Errc::protocol, "process set {}: ranks {} have never agreed on tensor '{}'", set_,
                  ranks.text(), tensor.name);
    }
  }
  return resolved;
}

Status RootLog::add(const Declaration& declaration) {
  auto& slot = tensors_[declaration.name];
  if (slot == nullptr) {
    slot = std::make_unique<Tensor>();
    slot->name = declaration.name;
  }
  HORO_TRY(auto variants, resolve(*slot, declaration.variants));
  auto absent = members_;
  for (const auto& [signature, ranks] : variants) absent.remove(ranks);
  Pending pending{.tensor = slot.get(),
                  .error = {},
                  .signature = *variants.begin()->first,
                  .whole = absent.empty()};
  if (compatible(variants)) {
    pending.error = refusal(slot->name, pending.signature, absent);
    record_agreed(*slot, std::move(variants));
  } else {
    pending.error = to_bytes(describe_mismatch(slot->name, variants));
  }
  add_pending(std::move(pending));
  return {};
}

void RootLog::add_pending(Pending pending) {
  ++pending.tensor->pending;
  pending_.push_back(std::move(pending));
}

RootLog::Tensor* RootLog::find_idle() {
  // Tensors that wait for an entry go to the end, because they are used soon.
  for (std::size_t i = by_use_.size(); i > 0 && by_use_.front()->pending != 0; --i)
    by_use_.splice(by_use_.end(), by_use_, by_use_.begin());
  return by_use_.empty() || by_use_.front()->pending != 0 ? nullptr : by_use_.front();
}

void RootLog::number(Tensor& tensor) {
  auto* const old = by_place_.size() < rules_.most_names ? nullptr : find_idle();
  if (old == nullptr) {
    tensor.number = static_cast<std::uint32_t>(by_place_.size());
    by_place_.push_back(&tensor);
    by_use_.push_back(&tensor);
    tensor.use = std::prev(by_use_.end());
  } else {
    tensor.number = old->number + kMostTensors;
    by_place_[place_of_number(tensor.number)] = &tensor;
    *old->use = &tensor;
    tensor.use = old->use;
    tensors_.erase(tensors_.find(old->name));
  }
  tensor.numbered = true;
}

void RootLog::record_agreed(Tensor& tensor, Variants&& variants) {
  const auto& like = *variants.begin()->first;
  tensor.key = fusion_key(like);
  tensor.bytes = like.bytes();
  if (has_rows(like.kind)) {
    tensor.bytes = 0;
    for (const auto& [signature, ranks] : variants)
      tensor.bytes += signature->bytes() * static_cast<std::uint64_t>(ranks.size());
  }
  // Ranks that had joined keep what they last agreed to.
  RankRanges said;
  for (const auto& [signature, ranks] : variants) said.add(ranks);
  for (auto& [signature, ranks] : tensor.agreed) {
    ranks.remove(said);
    if (!ranks.empty()) variants[signature].add(ranks);
  }
  tensor.uniform = compatible(variants);
  tensor.agreed = std::move(variants);
}

std::string RootLog::refusal(const std::string& name, const Signature& signature,
                             const RankRanges& absent) {
  if (absent.empty() || possible_with_joined(signature)) return {};
  return to_bytes(joined_report(name, signature, absent.text(), absent.size()));
}

void RootLog::leave(const RankRanges& ranks) {
  auto fresh = ranks.intersection(members_);
  fresh.remove(left_);
  leaving_.add(fresh);
}

void RootLog::done(std::uint64_t entries) {
  done_ = std::max(done_, std::min(entries, next_));
}

LogEntry RootLog::entry_of(LogKind kind) {
  return {.set = set_,
          .sequence = next_++,
          .kind = kind,
          .definitions = {},
          .ids = {},
          .rows = {},
          .inputs = {},
          .text = {},
          .ranks = {},
          .tuning = {},
          .joined = false};
}

bool RootLog::may_cut(TimePoint now) const {
  return !pending_.empty() && has_room() && now >= next_cut();
}

TimePoint RootLog::next_cut() const {
  if (pending_.empty() || !has_room()) return TimePoint::max();
  return pending_since_ + rules_.cycle;
}

void RootLog::cut_tuning(std::vector<LogEntry>& out) {
  if (!new_tuning_ || !has_room() || !left_.empty()) return;
  auto entry = entry_of(LogKind::tuning);
  entry.tuning = *std::exchange(new_tuning_, std::nullopt);
  rules_.fusion_threshold = entry.tuning.fusion_threshold;
  rules_.cycle = Duration(entry.tuning.cycle_ns);
  out.push_back(std::move(entry));
}

void RootLog::cut(TimePoint now, std::vector<LogEntry>& out) {
  cut_tuning(out);
  while (may_cut(now)) {
    out.push_back(entry_of(LogKind::work));
    out.back().joined = !joined_.empty();
    cut_one(out.back(), now);
    pending_since_ = now;
  }
  // Tensors that all ranks have submitted run first.
  if (!pending_.empty()) return;
  if (joined_ == members_) {
    auto entry = entry_of(LogKind::join);
    entry.ranks = joined_last_;
    joined_ = {};
    out.push_back(std::move(entry));
  }
  if (!leaving_.empty()) {
    auto entry = entry_of(LogKind::left);
    entry.ranks = leaving_;
    left_.add(leaving_);
    leaving_ = {};
    out.push_back(std::move(entry));
  }
}

void RootLog::put_rows(const Tensor& tensor, std::vector<std::uint64_t>& rows) const {
  const auto start = rows.size();
  rows.resize(start + static_cast<std::size_t>(members_.size()));
  for (const auto& [signature, ranks] : tensor.agreed) {
    for (const auto& range : ranks.ranges()) {
      const auto at = start + members_.index_of(Rank{range.first});
      std::fill_n(rows.begin() + static_cast<std::ptrdiff_t>(at), range.count,
                  static_cast<std::uint64_t>(signature->extents[0]));
    }
  }
}

TimePoint RootLog::last_cut(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? TimePoint::min() : found->second->cut;
}

void RootLog::choose_tensors() {
  const auto words =
      has_rows(pending_.front().signature.kind) ? static_cast<std::size_t>(members_.size()) + 1 : 1;
  const auto most = std::clamp<std::size_t>(rules_.most_words / words, 1, rules_.most_tensors);
  candidates_.clear();
  std::uint64_t bytes = 0;
  std::size_t names = 0;
  for (std::size_t i = 0; i < pending_.size() && i < most; ++i) {
    const auto& next = pending_[i];
    const bool runs = next.error.empty();
    candidates_.push_back({.id = TensorId{static_cast<std::uint32_t>(i)},
                           .bytes = runs ? next.tensor->bytes : 0,
                           .fuse_key = runs ? next.tensor->key : 0});
    bytes += candidates_.back().bytes;
    if (must_define(next)) names += next.tensor->name.size();
    // The fusion plan stops at the threshold too; names are limited by the size of a frame.
    if (bytes > rules_.fusion_threshold || names > kMostNamesBytes) break;
  }
  plan_fusion(candidates_, {.threshold_bytes = rules_.fusion_threshold, .most_tensors = most},
              taken_);
}

void RootLog::cut_one(LogEntry& entry, TimePoint now) {
  choose_tensors();
  const bool with_rows = has_rows(pending_.front().signature.kind);
  if (!pending_.front().error.empty()) {
    entry.kind = LogKind::mismatch;
    entry.text = pending_.front().error.substr(0, kMostTextBytes);
  }
  for (const auto i : taken_) {
    auto& tensor = *pending_[i].tensor;
    const bool define = must_define(pending_[i]);
    if (!tensor.numbered) number(tensor);
    by_use_.splice(by_use_.end(), by_use_, tensor.use);
    if (define) {
      entry.definitions.push_back(
          {.id = tensor.number, .name = tensor.name, .signature = pending_[i].signature});
    }
    entry.ids.push_back(tensor.number);
    tensor.cut = now;
  }
  std::sort(entry.ids.begin(), entry.ids.end());
  if (entry.kind == LogKind::work) carry(entry);
  if (with_rows && entry.kind == LogKind::work) {
    for (const auto id : entry.ids) put_rows(*by_place_[place_of_number(id)], entry.rows);
  }
  remove_taken();
}

/// Gives the entry the inputs of its tensors, if all of them have brought theirs and fit.
void RootLog::carry(LogEntry& entry) {
  std::size_t bytes = 0;
  const auto members = static_cast<std::uint64_t>(members_.size());
  for (const auto i : taken_) {
    const auto& signature = pending_[i].signature;
    const auto& inputs = pending_[i].inputs;
    if (!is_carried(signature, members_.size())) return;
    // Inputs of another size, or none: the tensors are summed as usual.
    if (inputs.size() != signature.bytes() * members) return;
    bytes += inputs.size();
  }
  // Each tensor takes a word for its number, and at most one that its inputs do not fill.
  if (bytes > kMostCarriedInEntry ||
      bytes / sizeof(std::uint64_t) + 2 * taken_.size() > rules_.most_words)
    return;
  entry.kind = LogKind::carried;
  entry.inputs.resize(taken_.size());
  for (const auto i : taken_) {
    const auto at =
        std::lower_bound(entry.ids.begin(), entry.ids.end(), pending_[i].tensor->number);
    entry.inputs[static_cast<std::size_t>(at - entry.ids.begin())] = std::move(pending_[i].inputs);
  }
}

void RootLog::remove_taken() {
  for (const auto i : taken_) --pending_[i].tensor->pending;
  // Candidates that were not taken move up to the tensors behind them.
  auto left = taken_.size();
  auto to = candidates_.size();
  for (auto i = candidates_.size(); i-- > 0;) {
    if (left > 0 && taken_[left - 1] == i) {
      --left;
    } else if (--to != i) {
      pending_[to] = std::move(pending_[i]);
    }
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(taken_.size()));
}

}  // namespace horo::runtime::tree
