// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/tuning_course.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "autotune/chance/probability.hpp"
#include "autotune/duel.hpp"

namespace horo::runtime::tuning {

namespace {

constexpr std::string_view kCheckState = "check";
/// The ending of a check that a known winner has passed: no challenger has won here.
constexpr std::string_view kKnownHolds = "known holds";
/// A sample that an earlier job has measured.
constexpr std::string_view kEarlierState = "earlier job";

/// 0: the earlier search has not measured it.
double mean_score_of(const Tuning& tuning, const EarlierSearch& earlier) {
  double sum = 0, count = 0;
  for (const auto& sample : earlier.samples) {
    if (sample.tuning != tuning) continue;
    sum += sample.score;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

}  // namespace

Result<autotune::Search> TuningCourse::search_of(const TuningSpace& space,
                                                 const CourseOptions& options,
                                                 autotune::SearchState state) {
  autotune::SearchOptions search;
  search.seed = options.seed;
  search.most_samples = static_cast<std::size_t>(std::max(1, options.most_samples));
  search.even_points = options.even_points;
  for (const auto& hint : options.hints) {
    if (auto setting = space.setting_of(hint)) search.hints.push_back(std::move(*setting));
  }
  return autotune::Search::resume(space.space(), std::move(search), std::move(state));
}

Result<TuningCourse> TuningCourse::make(TuningSpace space, const CourseOptions& options) {
  HORO_TRY(auto search, search_of(space, options));
  return TuningCourse(std::move(space), std::move(search), options);
}

bool TuningCourse::start_warm(const KnownResult& known) {
  const auto measured = search_.state().measurements;
  if (check_ || measured.size() > 1 || !space_.setting_of(known.tuning)) return false;
  if (!known.beats_default && known.samples < search_.least_samples()) return false;
  options_.hints.insert(options_.hints.begin(), known.tuning);
  auto search = search_of(space_, options_);
  if (!search) return false;
  search_ = std::move(*search);
  proposal_.reset();
  std::optional<Score> fallback;
  for (const auto& one : measured) {
    static_cast<void>(search_.tell(one.setting, one.score, one.standard_error));
    fallback = mean_of(space_.space().fallback());
  }
  known_ = known;
  check_.emplace(known, space_.start(), fallback);
  return true;
}

void TuningCourse::resume(const EarlierSearch& earlier) {
  if (check_ || search_.state().measurements.size() > 1) return;
  earlier_ = earlier;
  if (default_score() > 0) take_over();
}

void TuningCourse::take_over() {
  const auto earlier = *std::exchange(earlier_, std::nullopt);
  const auto then = mean_score_of(space_.start(), earlier);
  if (then == 0) return;
  const auto change = default_score() / then;
  if (!(change < kMostChange && change > 1 / kMostChange)) {
    dropped_ = change - 1;
    return;
  }
  auto state = search_.state();
  std::vector<CourseRow> rows;
  for (const auto& sample : earlier.samples) {
    auto setting = space_.setting_of(sample.tuning);
    if (!setting) continue;
    const Score score{.score = change * sample.score,
                      .standard_error = change * sample.standard_error};
    state.measurements.push_back({.setting = std::move(*setting),
                                  .score = score.score,
                                  .standard_error = score.standard_error});
    rows.push_back({.tuning = sample.tuning, .score = score, .state = kEarlierState});
  }
  if (earlier.challenger) state.challenger = space_.setting_of(*earlier.challenger);
  if (state.challenger) state.turns = earlier.turns;
  // The samples of this job check the earlier one, which costs no budget.
  auto options = options_;
  options.most_samples += static_cast<int>(search_.state().measurements.size());
  auto search = search_of(space_, options, std::move(state));
  if (!search) return;
  options_ = options;
  search_ = std::move(*search);
  proposal_.reset();
  resumed_ = std::move(rows);
}

std::optional<EarlierSearch> TuningCourse::unfinished() const {
  const auto& state = search_.state();
  const bool compares =
      std::any_of(state.measurements.begin(), state.measurements.end(),
                  [this](const auto& one) { return one.setting != space_.space().fallback(); });
  if (!compares || confirmed() || state.ending != autotune::SearchEnding::searching)
    return std::nullopt;
  EarlierSearch search;
  for (const auto& one : state.measurements) {
    if (!(one.score > 0) || !std::isfinite(one.score)) continue;
    search.samples.push_back({.tuning = space_.tuning_of(one.setting),
                              .score = one.score,
                              .standard_error = one.standard_error});
  }
  if (!state.challenger) return search;
  search.challenger = space_.tuning_of(*state.challenger);
  search.turns = state.turns;
  if (search.turns.size() % 2 != 0) search.turns.pop_back();
  const bool whole = std::all_of(search.turns.begin(), search.turns.end(),
                                 [](double turn) { return std::isfinite(turn); });
  if (!whole) search.turns.clear();
  return search;
}

const autotune::Proposal& TuningCourse::proposal() {
  if (!proposal_) proposal_ = search_.ask();
  return *proposal_;
}

Tuning TuningCourse::next() {
  if (warms_up()) return space_.start();
  if (confirmed()) return known_->tuning;
  if (check_ && found_ == WarmFinding::goes_on) return check_->next();
  return space_.tuning_of(proposal().setting);
}

bool TuningCourse::settled() {
  if (warms_up()) return false;
  if (check_ && found_ != WarmFinding::refuted) return confirmed();
  return proposal().stage == autotune::SearchStage::settled;
}

CourseRow TuningCourse::add_to_check(const Score& score) {
  const CourseRow row{.tuning = check_->next(), .score = score, .state = kCheckState};
  found_ = check_->add(score);
  // The search need not measure again the settings of the check.
  if (const auto setting = space_.setting_of(row.tuning))
    static_cast<void>(search_.tell(*setting, score.score, score.standard_error));
  return row;
}

std::optional<CourseRow> TuningCourse::add(const Score& score) {
  if (warms_up()) {
    --warmup_left_;
    return std::nullopt;
  }
  if (check_ && found_ == WarmFinding::goes_on) return add_to_check(score);
  const auto asked = proposal();
  proposal_.reset();
  const CourseRow row{
      .tuning = space_.tuning_of(asked.setting), .score = score, .state = name(asked.stage)};
  // The setting comes from the search itself, so it lies in the space.
  static_cast<void>(search_.tell(asked.setting, score.score, score.standard_error));
  if (earlier_ && default_score() > 0) take_over();
  return row;
}

std::size_t TuningCourse::samples() const {
  const auto outcome = search_.outcome();
  return outcome.samples + outcome.turns;
}

autotune::Outcome TuningCourse::outcome() const {
  auto outcome = search_.outcome();
  if (!confirmed()) return outcome;
  outcome.ending = known_->beats_default ? autotune::SearchEnding::challenger_won
                                         : autotune::SearchEnding::default_is_best;
  if (auto setting = space_.setting_of(known_->tuning)) outcome.setting = std::move(*setting);
  if (!known_->beats_default) return outcome;
  outcome.turns = std::exchange(outcome.samples, 0);
  outcome.gain = check_->gain();
  outcome.gain_error = check_->gain_error();
  outcome.chance = autotune::normal_cumulative(-outcome.gain / outcome.gain_error);
  return outcome;
}

KnownResult TuningCourse::result() const {
  const auto found = outcome();
  const bool won = found.ending == autotune::SearchEnding::challenger_won;
  return {.tuning = space_.tuning_of(found.setting),
          .beats_default = won,
          .gain = won ? found.gain : 0,
          .default_score = default_score(),
          .samples = found.samples};
}

bool TuningCourse::worth_keeping() const {
  using autotune::SearchEnding;
  const auto ending = outcome().ending;
  // A check finds nothing new.
  return !confirmed() && ending != SearchEnding::budget_too_short &&
         ending != SearchEnding::nothing_to_tune;
}

std::vector<Tuning> TuningCourse::runners_up(std::size_t count) const {
  const auto kept = outcome().setting;
  std::vector<autotune::Setting> settings;
  for (const auto& one : search_.state().measurements) {
    const bool listed = std::find(settings.begin(), settings.end(), one.setting) != settings.end();
    if (!listed && one.setting != kept) settings.push_back(one.setting);
  }
  std::stable_sort(settings.begin(), settings.end(), [this](const auto& a, const auto& b) {
    return mean_of(a).score > mean_of(b).score;
  });
  settings.resize(std::min(settings.size(), count));
  std::vector<Tuning> tunings;
  for (const auto& setting : settings) tunings.push_back(space_.tuning_of(setting));
  return tunings;
}

Score TuningCourse::mean_of(const autotune::Setting& setting) const {
  double sum = 0, squares = 0, count = 0;
  for (const auto& measured : search_.state().measurements) {
    if (measured.setting != setting) continue;
    sum += measured.score;
    squares += measured.standard_error * measured.standard_error;
    ++count;
  }
  if (count == 0) return {};
  return {.score = sum / count, .standard_error = std::sqrt(squares) / count, .steps = 0};
}

CourseRow TuningCourse::last_row() const {
  const auto outcome = this->outcome();
  return {.tuning = space_.tuning_of(outcome.setting),
          .score = mean_of(outcome.setting),
          .state = confirmed() && known_->beats_default ? kKnownHolds : name(outcome.ending)};
}

CourseRow TuningCourse::early_row() const {
  auto row = last_row();
  if (!confirmed() || warms_up()) row.state = warms_up() ? "ended in warm-up" : "ended early";
  return row;
}

std::string TuningCourse::verdict() const {
  using autotune::SearchEnding;
  const auto outcome = this->outcome();
  const auto stays = [&](std::string_view why) {
    return fmt::format("{} stays after {} samples: {}", options_.base, samples(), why);
  };
  if (confirmed() && !known_->beats_default)
    return stays("an earlier job found nothing better, and this one runs as it did");
  if (confirmed()) {
    return fmt::format(
        "{} is kept from an earlier job, where it was {:.1f} % faster than {}; a check of {} "
        "samples "
        "measured {:+.1f} % +- {:.1f} % here",
        describe(known_->tuning), 100 * known_->gain, options_.base, samples(), 100 * outcome.gain,
        100 * outcome.gain_error);
  }
  switch (outcome.ending) {
    case SearchEnding::searching:
      return early_verdict();
    case SearchEnding::nothing_to_tune:
      return "there is nothing to tune: every value that could change is set";
    case SearchEnding::budget_too_short:
      return stays(
          "too few were allowed to try anything else; raise autotune.bayes.opt.max.samples");
    case SearchEnding::default_is_best:
      return stays("no other setting is expected to be faster");
    case SearchEnding::default_stays:
      return stays(
          fmt::format("in turns, the best other setting differed by {:+.1f} % +- {:.1f} %, {}",
                      100 * outcome.gain, 100 * outcome.gain_error,
                      autotune::meaning_of_turns(outcome.gain, outcome.gain_error)));
    case SearchEnding::challenger_won:
      break;
  }
  return fmt::format(
      "{} is {:.1f} % +- {:.1f} % faster than {}, measured in {} turns after {} samples; the "
      "chance of that without a real gain is {:.2g} %",
      describe(space_.tuning_of(outcome.setting)), 100 * outcome.gain, 100 * outcome.gain_error,
      options_.base, outcome.turns, outcome.samples, 100 * outcome.chance);
}

std::string TuningCourse::early_verdict() const {
  if (warms_up())
    return fmt::format(
        "the training ended during the warm-up, {} samples before its end; {} was kept",
        warmup_left_, options_.base);
  return fmt::format("the training ended after {} samples, before the search did; keep {}",
                     samples(), options_.base);
}

}  // namespace horo::runtime::tuning
