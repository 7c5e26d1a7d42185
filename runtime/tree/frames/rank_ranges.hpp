// SPDX-License-Identifier: Apache-2.0
// Sets of ranks, stored as ranges: the ranks of a subtree of hosts are a few ranges, however many
// ranks there are.
#pragma once

#include <string>
#include <vector>

#include "base/codec/bytes.hpp"
#include "base/strong.hpp"

namespace horo::runtime::tree {

inline constexpr int kMostRanks = 1 << 24;

class RankRanges {
 public:
  struct Range {
    int first = 0;
    int count = 0;

    int end() const { return first + count; }

    friend bool operator==(const Range&, const Range&) = default;
  };

  RankRanges() = default;

  /// `first`, `first` + 1, ... `count` of them.
  static RankRanges of(int first, int count);

  void add(Rank rank) { add(Range{.first = rank.value(), .count = 1}); }

  void add(const RankRanges& other);
  void remove(const RankRanges& other);

  bool contains(Rank rank) const;
  bool contains(const RankRanges& other) const;
  RankRanges intersection(const RankRanges& other) const;

  bool empty() const { return ranges_.empty(); }

  int size() const;

  /// The number of ranks before `rank`, which is in the set.
  std::size_t index_of(Rank rank) const;

  /// Ascending, with a gap between any two.
  const std::vector<Range>& ranges() const { return ranges_; }

  /// "0-3, 7"; shortened when it is long.
  std::string text() const;

  friend bool operator==(const RankRanges&, const RankRanges&) = default;

 private:
  void add(Range range);

  std::vector<Range> ranges_;
};

void put(ByteWriter& writer, const RankRanges& ranks);
RankRanges take_ranks(ByteReader& reader);

}  // namespace horo::runtime::tree
