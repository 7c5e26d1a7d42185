// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/tuning_course.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace horo::runtime::tuning {

Result<TuningCourse> TuningCourse::make(TuningSpace space, const CourseOptions& options) {
  autotune::SearchOptions search;
  search.seed = options.seed;
  search.most_samples = static_cast<std::size_t>(std::max(1, options.most_samples));
  HORO_TRY(auto made, autotune::Search::make(space.space(), std::move(search)));
  return TuningCourse(std::move(space), std::move(made), std::max(0, options.warmup_samples));
}

const autotune::Proposal& TuningCourse::proposal() {
  if (!proposal_) proposal_ = search_.ask();
  return *proposal_;
}

Tuning TuningCourse::next() {
  return warms_up() ? space_.start() : space_.tuning_of(proposal().setting);
}

bool TuningCourse::settled() {
  return !warms_up() && proposal().stage == autotune::SearchStage::settled;
}

std::optional<CourseRow> TuningCourse::add(const Score& score) {
  if (warms_up()) {
    --warmup_left_;
    return std::nullopt;
  }
  const auto asked = proposal();
  proposal_.reset();
  const CourseRow row{
      .tuning = space_.tuning_of(asked.setting), .score = score, .state = name(asked.stage)};
  // The setting comes from the search itself, so it lies in the space.
  static_cast<void>(search_.tell(asked.setting, score.score, score.standard_error));
  return row;
}

std::size_t TuningCourse::samples() const {
  const auto outcome = search_.outcome();
  return outcome.samples + outcome.turns;
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
  const auto outcome = search_.outcome();
  return {.tuning = space_.tuning_of(outcome.setting),
          .score = mean_of(outcome.setting),
          .state = name(outcome.ending)};
}

std::string TuningCourse::verdict() const {
  using autotune::SearchEnding;
  const auto outcome = search_.outcome();
  const auto stays = [&](std::string_view why) {
    return fmt::format("the default stays after {} samples: {}", samples(), why);
  };
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
      return stays(fmt::format(
          "in turns, the best other setting differed by {:+.1f} % +- {:.1f} %, within the noise",
          100 * outcome.gain, 100 * outcome.gain_error));
    case SearchEnding::challenger_won:
      break;
  }
  return fmt::format(
      "{} is {:.1f} % +- {:.1f} % faster than the default, measured in {} turns after {} samples; "
      "the chance of that without a real gain is {:.2g} %",
      describe(space_.tuning_of(outcome.setting)), 100 * outcome.gain, 100 * outcome.gain_error,
      outcome.turns, outcome.samples, 100 * outcome.chance);
}

std::string TuningCourse::early_verdict() const {
  if (warms_up())
    return fmt::format(
        "the training ended during the warm-up, {} samples before its end; the default was kept",
        warmup_left_);
  return fmt::format("the training ended after {} samples, before the search did; keep the default",
                     samples());
}

}  // namespace horo::runtime::tuning
