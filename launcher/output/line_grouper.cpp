// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/line_grouper.hpp"

#include <algorithm>

namespace horo::launcher {

void LineGrouper::add(Rank rank, Stream stream, const LinePiece& piece, std::string_view key,
                      const Stamp& stamp, TimePoint now) {
  auto& last = last_[rank.index()];
  std::string whole;
  if (!piece.continues && !piece.end.empty()) {
    whole.append(1, stream == Stream::out ? 'o' : 'e').append(key).append(1, '\0');
    whole.append(piece.body).append(piece.end);
    auto& numbers = numbers_[whole];
    const auto row = std::upper_bound(numbers.begin(), numbers.end(), last);
    if (row != numbers.end()) {
      rows_[*row - first_].row.ranks.push_back(rank);
      last = *row;
      return;
    }
    numbers.push_back(first_ + rows_.size());
  }
  last = first_ + rows_.size();
  bytes_ += piece.body.size() + sizeof(Waiting);
  rows_.push_back({.row = {.ranks = {rank},
                           .stream = stream,
                           .stamp = stamp,
                           .body = std::string(piece.body),
                           .end = std::string(piece.end),
                           .continues = piece.continues},
                   .key = std::move(whole),
                   .since = now});
}

void LineGrouper::leave(Rank rank) {
  if (gone_[rank.index()]) return;
  gone_[rank.index()] = true;
  --expected_;
}

/// Whether every rank that may still write has joined the row.
bool LineGrouper::has_all(const Row& row) const {
  if (row.ranks.size() < expected_) return false;
  const auto here = std::count_if(row.ranks.begin(), row.ranks.end(),
                                  [&](Rank rank) { return !gone_[rank.index()]; });
  return static_cast<std::size_t>(here) == expected_;
}

std::optional<LineGrouper::Row> LineGrouper::next(TimePoint now) {
  if (rows_.empty()) return std::nullopt;
  const auto& front = rows_.front();
  const bool ready =
      front.key.empty() || has_all(front.row) || now >= front.since + kWindow || bytes_ > kMost;
  return ready ? pop() : std::nullopt;
}

std::optional<LineGrouper::Row> LineGrouper::pop() {
  if (rows_.empty()) return std::nullopt;
  auto front = std::move(rows_.front());
  rows_.pop_front();
  ++first_;
  bytes_ -= front.row.body.size() + sizeof(Waiting);
  if (!front.key.empty()) {
    const auto found = numbers_.find(front.key);
    found->second.pop_front();
    if (found->second.empty()) numbers_.erase(found);
  }
  return std::move(front.row);
}

std::optional<TimePoint> LineGrouper::due() const {
  if (rows_.empty()) return std::nullopt;
  return rows_.front().since + kWindow;
}

}  // namespace horo::launcher
