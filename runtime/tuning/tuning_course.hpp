// SPDX-License-Identifier: Apache-2.0
// The course of a job's tuning: samples that warm up, the search, its end. No clock and no thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "autotune/search.hpp"
#include "base/result.hpp"
#include "runtime/tuning/tuning_space.hpp"

namespace horo::runtime::tuning {

struct CourseOptions {
  int warmup_samples = 3;
  int most_samples = 20;  ///< The search's, without the duel.
  std::uint64_t seed = 0;
};

/// A measured tuning; scores are bytes per second.
struct Score {
  double score = 0;
  double standard_error = 0;
  std::size_t steps = 0;
};

/// A line of the log file.
struct CourseRow {
  Tuning tuning;
  Score score;
  std::string_view state;  ///< Name of the search's stage; in the last row, of its ending.
};

/// Thread: owner.
class TuningCourse {
 public:
  /// Fails: invalid_argument.
  static Result<TuningCourse> make(TuningSpace space, const CourseOptions& options);

  /// The tuning to measure now; once settled, the tuning to keep. The same until add().
  Tuning next();

  /// The score of next(). Nothing in a warm-up, where samples do not count.
  std::optional<CourseRow> add(const Score& score);

  bool settled();

  bool warms_up() const { return warmup_left_ > 0; }

  /// Samples of the search so far, those of the duel included.
  std::size_t samples() const;

  /// The mean score of the default; 0: not measured yet.
  double default_score() const { return mean_of(space_.space().fallback()).score; }

  /// The tuning to keep, with the mean of its scores.
  CourseRow last_row() const;

  autotune::Outcome outcome() const { return search_.outcome(); }

  /// One line for people: what was chosen, the gain and its confidence, or why the default stays.
  std::string verdict() const;

  /// The same if the training ends now.
  std::string early_verdict() const;

 private:
  TuningCourse(TuningSpace space, autotune::Search search, int warmup_samples)
      : space_(std::move(space)), search_(std::move(search)), warmup_left_(warmup_samples) {}

  Score mean_of(const autotune::Setting& setting) const;

  /// The search's proposal. The search thinks of it for milliseconds, so it is kept.
  const autotune::Proposal& proposal();

  TuningSpace space_;
  autotune::Search search_;
  std::optional<autotune::Proposal> proposal_;
  int warmup_left_ = 0;
};

}  // namespace horo::runtime::tuning
