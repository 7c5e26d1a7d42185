// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/frames/rank_ranges.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace horo::runtime::tree {

RankRanges RankRanges::of(int first, int count) {
  RankRanges ranks;
  if (count > 0) ranks.ranges_.push_back({.first = first, .count = count});
  return ranks;
}

void RankRanges::add(Range range) {
  if (range.count <= 0) return;
  // Everything that touches the new range becomes one with it.
  auto begin = std::lower_bound(ranges_.begin(), ranges_.end(), range.first,
                                [](const Range& have, int first) { return have.end() < first; });
  auto end = begin;
  int last = range.end();
  for (; end != ranges_.end() && end->first <= last; ++end) {
    range.first = std::min(range.first, end->first);
    last = std::max(last, end->end());
  }
  range.count = last - range.first;
  if (begin == end) {
    ranges_.insert(begin, range);
  } else {
    *begin = range;
    ranges_.erase(begin + 1, end);
  }
}

void RankRanges::add(const RankRanges& other) {
  for (const auto& range : other.ranges_) add(range);
}

void RankRanges::remove(const RankRanges& other) {
  std::vector<Range> left;
  auto cut = other.ranges_.begin();
  for (auto range : ranges_) {
    while (cut != other.ranges_.end() && cut->end() <= range.first) ++cut;
    for (auto it = cut; it != other.ranges_.end() && it->first < range.end(); ++it) {
      if (it->first > range.first)
        left.push_back({.first = range.first, .count = it->first - range.first});
      const int end = range.end();
      range.first = std::min(end, it->end());
      range.count = end - range.first;
    }
    if (range.count > 0) left.push_back(range);
  }
  ranges_ = std::move(left);
}

bool RankRanges::contains(Rank rank) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), rank.value(),
                       [](int value, const Range& range) { return value < range.first; });
  return after != ranges_.begin() && rank.value() < (after - 1)->end();
}

bool RankRanges::contains(const RankRanges& other) const {
  return intersection(other) == other;
}

RankRanges RankRanges::intersection(const RankRanges& other) const {
  RankRanges both;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const int first = std::max(a->first, b->first);
    const int end = std::min(a->end(), b->end());
    if (first < end) both.ranges_.push_back({.first = first, .count = end - first});
    a->end() < b->end() ? ++a : ++b;
  }
  return both;
}

int RankRanges::size() const {
  int size = 0;
  for (const auto& range : ranges_) size += range.count;
  return size;
}

std::size_t RankRanges::index_of(Rank rank) const {
  int before = 0;
  for (const auto& range : ranges_) {
    if (rank.value() < range.end())
      return static_cast<std::size_t>(before + rank.value() - range.first);
    before += range.count;
  }
  return static_cast<std::size_t>(before);
}

std::string RankRanges::text() const {
  std::string text;
  for (const auto& range : ranges_) {
    if (text.size() > 120) return text + ", ...";
    if (!text.empty()) text += ", ";
    text += range.count == 1   ? fmt::format("{}", range.first)
            : range.count == 2 ? fmt::format("{}, {}", range.first, range.first + 1)
                               : fmt::format("{}-{}", range.first, range.end() - 1);
  }
  return text;
}

void put(ByteWriter& writer, const RankRanges& ranks) {
  writer.varint(ranks.ranges().size());
  int at = 0;
  for (const auto& range : ranks.ranges()) {
    writer.varint(static_cast<std::uint64_t>(range.first - at));
    writer.varint(static_cast<std::uint64_t>(range.count - 1));
    at = range.end() + 1;  // A gap of at least one rank.
  }
}

RankRanges take_ranks(ByteReader& reader) {
  RankRanges ranks;
  std::uint64_t at = 0;
  const auto count = reader.count(reader.varint(), 2);
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = at + reader.varint(kMostRanks);
    const auto size = 1 + reader.varint(kMostRanks);
    if (!reader.good() || first + size > kMostRanks) {
      reader.refuse("are too large");
      return {};
    }
    ranks.add(RankRanges::of(static_cast<int>(first), static_cast<int>(size)));
    at = first + size + 1;
  }
  return ranks;
}

}  // namespace horo::runtime::tree
