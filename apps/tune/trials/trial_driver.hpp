// SPDX-License-Identifier: Apache-2.0
// Decides which trial comes next and when to stop: a search under a budget, with commands that may
// fail. Results come in, trials go out; no clock and no process is here. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "autotune/search.hpp"

namespace horo::apps {

struct TrialRules {
  double most_seconds = std::numeric_limits<double>::infinity();
  std::size_t most_trials = 42;
  std::size_t most_failures = 3;  ///< The search stops after so many failures in a row.
  std::uint64_t seed = 0;
};

/// How a trial ended.
enum class TrialEnding : std::uint8_t {
  measured,
  failed,       ///< The command failed, or nothing could be measured.
  timed_out,    ///< The trial's limit passed.
  interrupted,  ///< The user stopped the search: the trial says nothing.
};

struct TrialResult {
  TrialEnding ending = TrialEnding::measured;
  double score = 0;  ///< Larger is better.
  double standard_error = 0;
  std::size_t steps = 0;
  double seconds = 0;
  std::string failure{};  ///< One line.
};

/// A trial that is over.
struct DoneTrial {
  autotune::Setting setting;
  std::string stage;
  TrialResult result;
};

enum class TrialStop : std::uint8_t {
  none,
  settled,      ///< The search has come to its end.
  out_of_time,  ///< No further trial fits the budget.
  out_of_trials,
  failures,  ///< Too many trials in a row failed.
  interrupted,
};

/// The next step: a trial, or the end.
struct NextTrial {
  TrialStop stop = TrialStop::none;
  autotune::Setting setting;  ///< To try, if there is no reason to stop.
  std::string stage;
  std::size_t number = 0;  ///< Counts from 1.
  double limit_seconds = 0;
};

/// Everything that must be kept to continue later.
struct TrialState {
  autotune::SearchState search;
  std::vector<DoneTrial> trials;
};

/// Thread: owner.
class TrialDriver {
 public:
  /// Begins, or continues with `state`; failures in a row before it do not count.
  /// Fails: invalid_argument (a setting of `state` is not in the space).
  static Result<TrialDriver> make(const autotune::SearchSpace& space, const TrialRules& rules,
                                  TrialState state);

  /// The same until finished().
  const NextTrial& next();

  /// The trial next() is over.
  void finished(const TrialResult& result);

  /// The search so far.
  const TrialState& state() const { return state_; }

  autotune::Outcome outcome() const { return search_.outcome(); }

  std::optional<autotune::BestSoFar> best_so_far() const { return search_.best_so_far(); }

  const autotune::SearchSpace& space() const { return search_.space(); }

  /// The mean score of the default; 0: not measured.
  double default_score() const;

  double seconds_left() const;

  /// The most time that the search can still take; nothing before the first trial.
  std::optional<double> most_seconds_left() const;

  /// The mean time of a trial; 0: unknown.
  double seconds_per_trial() const;

 private:
  TrialDriver(autotune::Search search, const TrialRules& rules, TrialState state);

  std::optional<TrialStop> reason_to_stop() const;
  double trials_left() const;
  double trial_limit() const;
  void begin_duel_in_time();

  autotune::Search search_;
  const TrialRules rules_;
  TrialState state_;
  const std::size_t begun_at_;  ///< Number of trials that earlier calls have made.
  std::optional<NextTrial> next_;
  std::size_t failures_in_row_ = 0;
  bool interrupted_ = false;
  bool out_of_time_ = false;
};

}  // namespace horo::apps
