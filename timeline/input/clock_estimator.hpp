// SPDX-License-Identifier: Apache-2.0
// Estimates the clock offsets between a job's hosts from the records of its ranks. No rank begins
// an entry before all ranks have submitted it, or ends one before all ranks have contributed their
// bytes; each such pair of events bounds the offset.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "timeline/record/rank_source.hpp"
#include "timeline/record/record.hpp"

namespace horo::timeline {

struct ClockShift {
  std::int64_t ns = 0;        ///< Correction to add to the host's clock; 0: none is needed.
  std::int64_t error_ns = 0;  ///< Largest error of the correction; -1: unknown.
};

/// Thread: owner. Memory grows with the entries that have not ended on all ranks.
class ClockEstimator {
 public:
  /// `ranks`: the number of ranks with records. Clocks are compared with that of the host
  /// `reference`.
  ClockEstimator(std::size_t ranks, std::string reference)
      : ranks_(ranks), reference_(std::move(reference)) {}

  /// Takes each rank's records in order of time; the ranks may be interleaved in any way.
  void take(const RankSource& source, const Record& record);

  /// Whether enough entries were seen; more would hardly improve the estimate.
  bool is_enough() const { return entries_seen_ >= kEnough; }

  /// The corrections by host, without the reference host.
  std::map<std::string, ClockShift> shifts() const;

 private:
  static constexpr std::size_t kEnough = 2000;

  struct Key {
    std::uint16_t set = 0;
    std::uint64_t entry = 0;

    auto operator<=>(const Key&) const = default;
  };

  /// The times of an entry on one host: of the first or last of its ranks.
  struct Part {
    std::int64_t submitted_last = 0;
    std::int64_t begun_first = 0;
    std::int64_t begun_last = 0;
    std::int64_t ended_first = 0;
  };

  struct Entry {
    bool needs_all = false;  ///< No rank can end the entry before all have begun it.
    std::size_t ended = 0;
    std::map<std::string, Part> parts;
  };

  struct Bounds {
    std::optional<std::int64_t> least;
    std::optional<std::int64_t> most;
  };

  struct Rank {
    std::map<std::pair<std::uint16_t, std::uint32_t>, std::int64_t> submitted;
    Key last{};  ///< The entry whose members follow.
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

}  // namespace horo::timeline
