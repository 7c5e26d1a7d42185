// SPDX-License-Identifier: Apache-2.0
// A search that its job's end has interrupted, as it is kept for the next job, and its line in a
// file. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tuning/memory/stored_result.hpp"

namespace horo::runtime::tuning {

/// One sample.
struct TriedTuning {
  Tuning tuning;
  double score = 0;           ///< Bytes per second.
  double standard_error = 0;  ///< The error of `score`.

  friend bool operator==(const TriedTuning&, const TriedTuning&) = default;
};

/// The samples of a search that has not ended.
struct EarlierSearch {
  std::vector<TriedTuning> samples;
  std::optional<Tuning> challenger;  ///< Since the turns with the default began.
  /// Scores of the turns, as autotune::SearchState has them; an even number, all finite.
  std::vector<double> turns;

  friend bool operator==(const EarlierSearch&, const EarlierSearch&) = default;
};

struct UnfinishedSearch {
  JobKey key;
  EarlierSearch search;
  std::int64_t time = 0;  ///< Seconds since 1970, of the last sample.

  friend bool operator==(const UnfinishedSearch&, const UnfinishedSearch&) = default;
};

/// Values separated by tabs, without a line end: topology, tensors, time, samples, challenger and
/// turns. A list is separated by semicolons, and a sample's values are separated by commas.
std::string to_line(const UnfinishedSearch& search);

/// Fails: protocol (the line is damaged; the message says where).
Result<UnfinishedSearch> unfinished_from_line(std::string_view line);

}  // namespace horo::runtime::tuning
