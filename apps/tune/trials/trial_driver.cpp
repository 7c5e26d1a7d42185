// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/trial_driver.hpp"

#include <algorithm>
#include <cmath>

#include "autotune/duel.hpp"

namespace horo::apps {

namespace {

/// Turns cost trials of both settings. With fewer trials in all, every one is used to search, and
/// nothing is confirmed.
constexpr double kLeastForDuel = 12;
constexpr double kLeastTurns = 2 * autotune::kDuelLooks[0].pairs;
constexpr double kMostTurns = 2 * autotune::kMostPairs;

/// A setting that takes so many times the default's time is not worth measuring.
constexpr double kMostTimesDefault = 4;
constexpr double kLeastLimit = 20;  // Seconds: starting a job takes its time on a busy machine.

autotune::SearchOptions options_of(const TrialRules& rules, std::size_t most_samples) {
  autotune::SearchOptions options;
  options.seed = rules.seed;
  options.most_samples = std::max<std::size_t>(1, most_samples);
  return options;
}

/// Trials kept for the turns, out of `all`.
double reserved_turns(double all) {
  if (all < kLeastForDuel) return 0;
  return std::clamp(std::floor(all / 3), kLeastTurns, kMostTurns);
}

}  // namespace

Result<TrialDriver> TrialDriver::make(const autotune::SearchSpace& space, const TrialRules& rules,
                                      TrialState state) {
  const auto all = static_cast<double>(rules.most_trials);
  const auto samples = static_cast<std::size_t>(all - reserved_turns(all));
  HORO_TRY(auto search, autotune::Search::resume(space, options_of(rules, samples), state.search));
  return TrialDriver(std::move(search), rules, std::move(state));
}

TrialDriver::TrialDriver(autotune::Search search, const TrialRules& rules, TrialState state)
    : search_(std::move(search)),
      rules_(rules),
      state_(std::move(state)),
      begun_at_(state_.trials.size()) {}

double TrialDriver::seconds_left() const {
  double used = 0;
  // The budget is that of this call. Trials of earlier calls took their time then.
  for (std::size_t i = begun_at_; i < state_.trials.size(); ++i)
    used += state_.trials[i].result.seconds;
  return std::max(0.0, rules_.most_seconds - used);
}

double TrialDriver::seconds_per_trial() const {
  double sum = 0;
  for (const auto& trial : state_.trials) sum += trial.result.seconds;
  return state_.trials.empty() ? 0 : sum / static_cast<double>(state_.trials.size());
}

std::optional<double> TrialDriver::most_seconds_left() const {
  const double each = seconds_per_trial();
  const double left = each > 0 ? std::min(seconds_left(), each * trials_left()) : seconds_left();
  return std::isfinite(left) ? std::optional(left) : std::nullopt;
}

double TrialDriver::trials_left() const {
  const auto done = static_cast<double>(state_.trials.size());
  const double by_count = std::max(0.0, static_cast<double>(rules_.most_trials) - done);
  const double each = seconds_per_trial();
  return each > 0 ? std::min(by_count, std::floor(seconds_left() / each)) : by_count;
}

double TrialDriver::default_score() const {
  double sum = 0, count = 0;
  for (const auto& trial : state_.trials) {
    if (trial.setting != space().fallback() || trial.result.ending != TrialEnding::measured)
      continue;
    sum += trial.result.score;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

double TrialDriver::trial_limit() const {
  double longest = 0;
  for (const auto& trial : state_.trials) {
    if (trial.setting == space().fallback() && trial.result.ending == TrialEnding::measured)
      longest = std::max(longest, trial.result.seconds);
  }
  const double left = seconds_left();
  return longest > 0 ? std::min(left, std::max(kLeastLimit, kMostTimesDefault * longest)) : left;
}

std::optional<TrialStop> TrialDriver::reason_to_stop() const {
  if (interrupted_) return TrialStop::interrupted;
  if (failures_in_row_ >= rules_.most_failures) return TrialStop::failures;
  if (out_of_time_) return TrialStop::out_of_time;
  if (state_.trials.size() >= rules_.most_trials) return TrialStop::out_of_trials;
  if (trials_left() < 1) return TrialStop::out_of_time;
  return std::nullopt;
}

/// Ends the search for points while the budget still has room for the turns.
void TrialDriver::begin_duel_in_time() {
  const auto& search = search_.state();
  if (search.challenger || search.measurements.size() < 2) return;
  const double left = trials_left();
  const double turns = reserved_turns(static_cast<double>(state_.trials.size()) + left);
  if (left > turns) return;
  // The same search with a smaller budget goes on with the turns. Its state is valid.
  auto shorter =
      autotune::Search::resume(space(), options_of(rules_, search.measurements.size()), search);
  if (shorter) search_ = std::move(*shorter);
}

const NextTrial& TrialDriver::next() {
  if (next_) return *next_;
  next_ = NextTrial{.number = state_.trials.size() + 1, .limit_seconds = trial_limit()};
  const bool searching = search_.state().ending == autotune::SearchEnding::searching;
  if (const auto stop = reason_to_stop(); searching && stop) {
    next_->stop = *stop;
    return *next_;
  }
  begin_duel_in_time();
  const auto proposal = search_.ask();
  next_->setting = proposal.setting;
  next_->stage = autotune::name(proposal.stage);
  if (proposal.stage == autotune::SearchStage::settled) next_->stop = TrialStop::settled;
  // The turns may have begun or ended the search just now.
  state_.search = search_.state();
  return *next_;
}

void TrialDriver::finished(const TrialResult& result) {
  const auto trial = next();
  next_.reset();
  if (result.ending == TrialEnding::interrupted) {
    interrupted_ = true;
    return;
  }
  // The budget ended, not the setting's time.
  if (result.ending == TrialEnding::timed_out && trial.limit_seconds >= seconds_left()) {
    out_of_time_ = true;
    return;
  }
  const bool measured = result.ending == TrialEnding::measured;
  failures_in_row_ = measured ? 0 : failures_in_row_ + 1;
  const double score = measured ? result.score : std::numeric_limits<double>::quiet_NaN();
  // The setting comes from the search itself, so it lies in the space.
  static_cast<void>(search_.tell(trial.setting, score, result.standard_error));
  state_.trials.push_back({.setting = trial.setting, .stage = trial.stage, .result = result});
  state_.search = search_.state();
}

}  // namespace horo::apps
