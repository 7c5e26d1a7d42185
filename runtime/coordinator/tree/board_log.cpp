// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator/tree/board_log.hpp"

#include <algorithm>

namespace horo::runtime::tree {

namespace {

RankRanges ranges_of(const std::vector<Rank>& ranks) {
  RankRanges ranges;
  for (const auto rank : ranks) ranges.add(rank);
  return ranges;
}

EntryKind kind_of(LogKind kind) {
  switch (kind) {
    case LogKind::work:
      return EntryKind::work;
    case LogKind::mismatch:
      return EntryKind::mismatch;
    case LogKind::join:
      return EntryKind::join;
    case LogKind::left:
      break;
  }
  return EntryKind::left;
}

}  // namespace

void BoardLog::take_completed(std::vector<Completed>& out) {
  ready_.clear();
  board_.take_ready(ready_);
  for (const auto id : ready_) {
    // Only a join needs everybody's mark, so everybody knows it as one.
    if (!board_.is_partial(id) && board_.signature(id, 0).kind == Kind::join) {
      join_ = {id};  // Told as ranks that have joined.
      continue;
    }
    out.push_back({.id = id, .changed = board_.is_changed(id) || board_.is_partial(id)});
  }
}

Declaration BoardLog::describe(TensorId id) {
  Declaration declaration{.name = std::string(board_.tensor_name(id)), .variants = {}};
  for (int m = 0; m < board_.local_size(); ++m) {
    if (!board_.has_marked(id, m)) continue;
    declaration.variants[board_.signature(id, m)].add(board_.global_rank(m));
  }
  return declaration;
}

Result<std::optional<TensorId>> BoardLog::define(std::string_view name,
                                                 const Signature& signature) {
  return board_.define(name, signature);
}

RankRanges BoardLog::take_joined() {
  return ranges_of(board_.take_joined());
}

RankRanges BoardLog::take_leaving() {
  return ranges_of(board_.take_leaving());
}

Result<bool> BoardLog::publish(const HostEntry& entry) {
  AgreedEntry agreed{.kind = kind_of(entry.kind),
                     .ids = entry.ids,
                     .rows = entry.rows,
                     .text = entry.text,
                     .rank = Rank{-1}};
  if (!entry.ranks->empty()) agreed.rank = Rank{entry.ranks->ranges().front().first};
  if (entry.kind == LogKind::join) agreed.ids = join_;
  if (entry.ids.size() + entry.rows.size() > board_.most_words()) {
    return fail(
        Errc::protocol,
        "an entry of {} tensors and {} row counts does not fit; HORO_CACHE_CAPACITY must be "
        "the same on all hosts",
        entry.ids.size(), entry.rows.size());
  }
  if (!board_.publish(agreed)) return false;
  if (entry.kind == LogKind::join) join_.clear();
  board_.wake(interest::kEntries);
  return true;
}

std::uint64_t BoardLog::done() const {
  return board_.take_done();
}

std::optional<Loss> BoardState::loss() {
  const auto poison = poison_of(host_.header());
  if (poison.cause == LossCause::none) return std::nullopt;
  const auto& name = host_.header().poison_host;
  return Loss{.rank = poison.rank,
              .cause = poison.cause,
              .detail = poison.detail,
              .host = {name.begin(), std::find(name.begin(), name.end(), '\0')}};
}

void BoardState::lose(const Loss& loss) {
  if (loss.cause == LossCause::stalled) host_.say_stall(loss.text);
  poison_board(host_.header(), {.rank = loss.rank, .cause = loss.cause, .detail = loss.detail},
               loss.host);
}

std::optional<Answer> BoardState::examine(const Question& question) {
  return examiner_ != nullptr ? examiner_->examine(question) : HostState::examine(question);
}

std::optional<Loss> BoardState::conclude(const Question& question, const Answer& answer) {
  return examiner_ != nullptr ? examiner_->conclude(question, answer) : std::nullopt;
}

}  // namespace horo::runtime::tree
