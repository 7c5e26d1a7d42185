// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/board_log.hpp"

#include <algorithm>

#include "base/race_point.hpp"
#include "runtime/board/entry_words.hpp"
#include "timeline/record/recorder.hpp"
#include "timeline/record/ticks.hpp"

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
    case LogKind::carried:
      return EntryKind::work;
    case LogKind::mismatch:
      return EntryKind::mismatch;
    case LogKind::join:
      return EntryKind::join;
    case LogKind::tuning:
      return EntryKind::tuning;
    case LogKind::left:
      break;
  }
  return EntryKind::left;
}

}  // namespace

void BoardLog::take_completed(std::vector<Completed>& out) {
  ready_.clear();
  port_.take_ready(ready_);
  for (const auto id : ready_) {
    // Only a join needs everybody's mark, so everybody knows it as one.
    if (!board_.marks().is_partial(id) &&
        board_.directory().signatures().declared(id, 0).kind == Kind::join) {
      join_ = {id};  // Told as ranks that have joined.
      continue;
    }
    out.push_back(
        {.id = id, .changed = board_.marks().is_changed(id) || board_.marks().is_partial(id)});
  }
}

LastSubmission BoardLog::last_submission(TensorId id) {
  const auto now = timeline::ticks_now(timeline::counts_by_processor());
  const auto last = board_.marks().last_marked(id, now);
  return {.rank = board_.region().global_rank(std::max(last.member, 0)),
          .ago = timeline::duration_of(last.ticks_ago)};
}

void BoardLog::show_arrivals(TensorId id, std::span<const LastSubmission> others) {
  auto* const recorder = timeline::Recorder::current();
  if (recorder == nullptr) return;
  const auto now = recorder->now();
  for (const auto& [rank, ago] : others) {
    recorder->arrival(board_.recorded_set(), id, rank,
                      now - std::min(now, timeline::ticks_in(ago)));
  }
}

Declaration BoardLog::describe(TensorId id) {
  Declaration declaration{.name = std::string(board_.region().tensor_name(id)), .variants = {}};
  for (int m = 0; m < board_.region().local_size(); ++m) {
    if (!board_.marks().has_marked(id, m)) continue;
    declaration.variants[board_.directory().signatures().declared(id, m)].add(
        board_.region().global_rank(m));
  }
  return declaration;
}

Result<std::optional<TensorId>> BoardLog::define(std::string_view name,
                                                 const Signature& signature) {
  return port_.define(name, signature);
}

RankRanges BoardLog::take_joined() {
  return ranges_of(port_.take_joined());
}

RankRanges BoardLog::take_leaving() {
  return ranges_of(port_.take_leaving());
}

Result<bool> BoardLog::publish(const HostEntry& entry) {
  AgreedEntry agreed{.kind = kind_of(entry.kind),
                     .ids = entry.ids,
                     .rows = entry.rows,
                     .inputs = entry.inputs,
                     .text = entry.text,
                     .rank = Rank{-1},
                     .tuning = entry.tuning,
                     .place = entry.place,
                     .next_place = entry.next_place};
  if (!entry.ranks->empty()) agreed.rank = Rank{entry.ranks->ranges().front().first};
  if (entry.kind == LogKind::join) agreed.ids = join_;
  auto words = entry.rows.size();
  for (const auto& inputs : entry.inputs) words += words_of(inputs.size());
  if (entry.ids.size() + words > port_.most_words()) {
    return fail(Errc::protocol,
                "an entry of {} tensors and {} words does not fit; HORO_CACHE_CAPACITY must be the "
                "same on all hosts",
                entry.ids.size(), words);
  }
  if (!port_.publish(agreed)) return false;
  if (entry.kind == LogKind::join) join_.clear();
  race_point();
  board_.bells().wake(interest::kEntries);
  return true;
}

std::uint64_t BoardLog::done() const {
  return port_.take_done();
}

bool BoardState::wants_arrivals() {
  return timeline::Recorder::wants_arrivals();
}

std::optional<Loss> BoardState::loss() {
  const auto poison = poison_of(*host_.board());
  if (poison.cause == LossCause::none) return std::nullopt;
  const auto& name = host_.board()->poison_host;
  return Loss{.rank = poison.rank,
              .cause = poison.cause,
              .detail = poison.detail,
              .host = {name.begin(), std::find(name.begin(), name.end(), '\0')}};
}

void BoardState::lose(const Loss& loss) {
  if (loss.cause == LossCause::stalled) host_.say_stall(loss.text);
  poison_board(host_.board(), {.rank = loss.rank, .cause = loss.cause, .detail = loss.detail},
               loss.host);
}

}  // namespace horo::runtime::tree
