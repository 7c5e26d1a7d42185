// SPDX-License-Identifier: Apache-2.0
// How far the clocks of a job's hosts are apart, from what its ranks recorded: nobody begins an
// entry that another has not submitted, or is done with one whose bytes another has yet to give.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "apps/timeline_view/rank_source.hpp"
#include "timeline/record.hpp"

namespace horo::apps {

struct ClockShift {
  std::int64_t ns = 0;        ///< To be added to the host's clock; 0: it contradicts nothing.
  std::int64_t error_ns = 0;  ///< It may be wrong by so much; -1: nobody knows how much.
};

/// Thread: owner. Memory: of entries that are not done on all ranks.
class ClockLearner {
 public:
  /// `ranks`: whose records come. Clocks are compared with that of the host `reference`.
  ClockLearner(std::size_t ranks, std::string reference)
      : ranks_(ranks), reference_(std::move(reference)) {}

  /// Of each rank in the order of time; between ranks in any.
  void take(const RankSource& source, const timeline::Record& record);

  /// More would hardly change what is known.
  bool is_enough() const { return entries_seen_ >= kEnough; }

  /// By host, but for the one that the others are compared with.
  std::map<std::string, ClockShift> shifts() const;

 private:
  static constexpr std::size_t kEnough = 2000;

  struct Key {
    std::uint16_t set = 0;
    std::uint64_t entry = 0;

    auto operator<=>(const Key&) const = default;
  };

  /// On one host: first and last of its ranks.
  struct Part {
    std::int64_t submitted_last = 0;
    std::int64_t begun_first = 0;
    std::int64_t begun_last = 0;
    std::int64_t ended_first = 0;
  };

  struct Entry {
    bool needs_all = false;  ///< Its bytes come from all ranks, after they have begun.
    std::size_t ended = 0;
    std::map<std::string, Part> parts;
  };

  struct Bounds {
    std::optional<std::int64_t> least;
    std::optional<std::int64_t> most;
  };

  struct Rank {
    std::map<std::pair<std::uint16_t, std::uint32_t>, std::int64_t> submitted;
    Key last{};  ///< Whose members follow.
    std::string host;
  };

  void end(Rank& rank, const Key& key, std::int64_t now);
  void compare(const Entry& entry);
  static ClockShift shift_of(const Bounds& bounds);

  const std::size_t ranks_;
  const std::string reference_;
  std::map<int, Rank> by_rank_;
  std::map<Key, Entry> entries_;
  std::map<std::string, Bounds> bounds_;
  std::size_t entries_seen_ = 0;
};

}  // namespace horo::apps
