// SPDX-License-Identifier: Apache-2.0
// The course of one search in a job: samples that warm up, the search, its end. No clock and no
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/search.hpp"
#include "base/result.hpp"
#include "runtime/tuning/memory/unfinished_search.hpp"
#include "runtime/tuning/tuning_space.hpp"
#include "runtime/tuning/warm_check.hpp"

namespace horo::runtime::tuning {

struct CourseOptions {
  int warmup_samples = 3;
  int most_samples = 20;  ///< The search's, without the duel.
  std::uint64_t seed = 0;
  std::string_view base = "the default";  ///< The name for people of what a winner must beat.
  std::vector<Tuning> hints;              ///< Tried first.
  /// Settings spread over the space before the model chooses. Nothing: as the search likes it.
  std::optional<std::size_t> even_points;
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

  /// The result of an earlier job, to be checked before anything else is tried. If it does not
  /// hold, the search begins, with the known tuning as a hint. Ignored: a result outside the space,
  /// and "the default is best" from a search that could try less than this one; then it returns
  /// false. Before the second sample of the search.
  bool start_warm(const KnownResult& known);

  /// Continues the search of an earlier job once this job has measured the default: its samples
  /// then count as if all had been as much faster or slower as the default is now. They do not
  /// count if that is more than kMostChange. Before the second sample of the search, and not after
  /// start_warm().
  void resume(const EarlierSearch& earlier);

  /// The tuning to measure now; once settled, the tuning to keep. The same until add().
  Tuning next();

  /// The score of next(). Nothing in a warm-up, where samples do not count.
  std::optional<CourseRow> add(const Score& score);

  bool settled();

  bool warms_up() const { return warmup_left_ > 0; }

  /// The result of an earlier job holds in this one.
  bool confirmed() const { return check_ && found_ == WarmFinding::confirmed; }

  /// The result of an earlier job does not hold in this one.
  bool refuted() const { return check_ && found_ == WarmFinding::refuted; }

  /// The samples of an earlier job that the search has taken over, as they count now.
  const std::vector<CourseRow>& resumed() const { return resumed_; }

  /// Samples of an earlier job that do not count, because the default is as much faster than it
  /// was, as a share.
  const std::optional<double>& dropped() const { return dropped_; }

  /// The search so far, for a later job. Nothing: it has ended, or has measured only the default.
  std::optional<EarlierSearch> unfinished() const;

  /// Samples of the search so far, those of the duel included.
  std::size_t samples() const;

  /// The mean score of the default; 0: not measured yet.
  double default_score() const { return mean_of(space_.space().fallback()).score; }

  /// The tuning to keep, with the mean of its scores.
  CourseRow last_row() const;

  /// The same if the training ends now.
  CourseRow early_row() const;

  autotune::Outcome outcome() const;

  /// This search has compared settings, so its result is of use to a later job. Only once settled.
  bool worth_keeping() const;

  /// For a later job. Only once settled.
  KnownResult result() const;

  /// The tunings with the best mean scores, at most `count`, without the one to keep.
  std::vector<Tuning> runners_up(std::size_t count) const;

  /// One line for people: what was chosen, the gain and its confidence, or why the default stays.
  std::string verdict() const;

  /// The same if the training ends now.
  std::string early_verdict() const;

 private:
  TuningCourse(TuningSpace space, autotune::Search search, const CourseOptions& options)
      : options_(options),
        space_(std::move(space)),
        search_(std::move(search)),
        warmup_left_(std::max(0, options.warmup_samples)) {}

  static Result<autotune::Search> search_of(const TuningSpace& space, const CourseOptions& options,
                                            autotune::SearchState state = {});

  Score mean_of(const autotune::Setting& setting) const;
  CourseRow add_to_check(const Score& score);
  void take_over();

  /// The search's proposal. The search thinks of it for milliseconds, so it is kept.
  const autotune::Proposal& proposal();

  CourseOptions options_;
  TuningSpace space_;
  autotune::Search search_;
  std::optional<autotune::Proposal> proposal_;
  int warmup_left_ = 0;
  std::optional<KnownResult> known_;
  std::optional<WarmCheck> check_;
  WarmFinding found_ = WarmFinding::goes_on;
  std::optional<EarlierSearch> earlier_;  ///< Not taken over yet.
  std::vector<CourseRow> resumed_;
  std::optional<double> dropped_;
};

}  // namespace horo::runtime::tuning
