// SPDX-License-Identifier: Apache-2.0
#include "autotune/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "autotune/acquisition.hpp"
#include "autotune/chance/draws.hpp"
#include "autotune/duel.hpp"
#include "autotune/first_points.hpp"
#include "autotune/response_model.hpp"

namespace horo::autotune {

namespace {

/// A gain of less than this share of the noise of one sample is not worth a sample.
constexpr double kShareOfNoise = 0.1;
/// So many points of the model are measured before the search may stop by itself: the first ones
/// correct the length scales most.
constexpr std::size_t kLeastByModel = 3;

std::size_t count_of(const std::vector<Setting>& settings, const Setting& one) {
  return static_cast<std::size_t>(std::count(settings.begin(), settings.end(), one));
}

double least_gain(const SearchOptions& options, const ResponseModel& model) {
  const double unit = options.scale == ScoreScale::relative ? 1 : model.spread();
  return std::max(options.least_gain * unit, kShareOfNoise * model.noise());
}

/// From the model's scale to the unit of Outcome::gain.
double gain_on(ScoreScale scale, double difference) {
  return scale == ScoreScale::relative ? std::expm1(difference) : difference;
}

const MeasuredGroup* group_of(const ResponseModel& model, const Setting& setting) {
  const auto found =
      std::find_if(model.groups().begin(), model.groups().end(),
                   [&](const MeasuredGroup& group) { return group.setting == setting; });
  return found == model.groups().end() ? nullptr : &*found;
}

}  // namespace

std::string_view name(SearchStage stage) {
  switch (stage) {
    case SearchStage::first_points:
      return "first points";
    case SearchStage::model:
      return "model";
    case SearchStage::duel:
      return "duel";
    case SearchStage::settled:
      return "settled";
  }
  return "";
}

std::string_view name(SearchEnding ending) {
  switch (ending) {
    case SearchEnding::searching:
      return "searching";
    case SearchEnding::nothing_to_tune:
      return "nothing to tune";
    case SearchEnding::budget_too_short:
      return "budget too short";
    case SearchEnding::default_is_best:
      return "default is best";
    case SearchEnding::default_stays:
      return "default stays";
    case SearchEnding::challenger_won:
      return "challenger won";
  }
  return "";
}

Result<Search> Search::make(SearchSpace space, SearchOptions options) {
  return resume(std::move(space), std::move(options), {});
}

Result<Search> Search::resume(SearchSpace space, SearchOptions options, SearchState state) {
  if (options.most_samples == 0)
    return fail(Errc::invalid_argument, "a search needs at least 1 sample, not 0");
  if (!(options.least_gain >= 0)) {
    return fail(Errc::invalid_argument, "the least gain is {}, it must be 0 or above",
                options.least_gain);
  }
  for (const auto& hint : options.hints)
    HORO_TRY_STATUS(space.check(hint).context("a setting to try first"));
  for (const auto& measurement : state.measurements)
    HORO_TRY_STATUS(space.check(measurement.setting).context("a measured setting"));
  if (state.challenger) HORO_TRY_STATUS(space.check(*state.challenger).context("the challenger"));
  return Search(std::move(space), std::move(options), std::move(state));
}

Search::Search(SearchSpace space, SearchOptions options, SearchState state)
    : space_(std::move(space)), options_(std::move(options)), state_(std::move(state)) {
  first_points_ = first_points(space_, options_.hints, options_.seed, options_.even_points);
  if (space_.nothing_to_tune()) state_.ending = SearchEnding::nothing_to_tune;
}

std::size_t Search::least_samples() const {
  return std::min(options_.most_samples, first_points_.size() + kLeastByModel);
}

std::optional<Setting> Search::next_first_point() const {
  std::vector<Setting> measured;
  for (const auto& measurement : state_.measurements) measured.push_back(measurement.setting);
  for (std::size_t i = 0; i < first_points_.size(); ++i) {
    const std::vector<Setting> until(first_points_.begin(),
                                     first_points_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    if (count_of(measured, first_points_[i]) < count_of(until, first_points_[i]))
      return first_points_[i];
  }
  return std::nullopt;
}

std::optional<Proposal> Search::next_by_model() const {
  const ResponseModel model(space_, state_.measurements, options_.scale);
  // Each sample has random numbers of its own, so that a resumed search continues alike.
  RandomDraws draws(options_.seed * 0x9E3779B97F4A7C15ULL + state_.measurements.size());
  const auto next = best_next_point(space_, model, draws);
  const bool may_stop = state_.measurements.size() >= first_points_.size() + kLeastByModel;
  if (may_stop && next.gain < least_gain(options_, model)) return std::nullopt;
  return Proposal{.stage = SearchStage::model,
                  .setting = next.setting,
                  .expected_gain = gain_on(options_.scale, next.gain)};
}

void Search::begin_duel() {
  const ResponseModel model(space_, state_.measurements, options_.scale);
  const auto* fallback = group_of(model, space_.fallback());
  if (model.groups().size() < (fallback == nullptr ? 1U : 2U)) {
    state_.ending = SearchEnding::budget_too_short;
    return;
  }
  const auto best = model.best_group();
  const bool none = best == model.groups().size();
  if (none || &model.groups()[best] == fallback) {
    state_.ending = SearchEnding::default_is_best;
    return;
  }
  state_.challenger = model.groups()[best].setting;
}

const Setting& Search::whose_turn() const {
  return is_challengers_turn(state_.turns.size()) ? *state_.challenger : space_.fallback();
}

Proposal Search::ask() {
  if (state_.ending == SearchEnding::searching && !state_.challenger) {
    const bool has_budget = state_.measurements.size() < options_.most_samples;
    if (const auto point = next_first_point(); point && has_budget)
      return {.stage = SearchStage::first_points, .setting = *point};
    if (has_budget) {
      if (const auto proposal = next_by_model()) return *proposal;
    }
    begin_duel();
  }
  if (state_.ending == SearchEnding::searching)
    return {.stage = SearchStage::duel, .setting = whose_turn()};
  return {.stage = SearchStage::settled, .setting = outcome().setting};
}

Status Search::tell(const Setting& setting, double score, double standard_error) {
  HORO_TRY_STATUS(space_.check(setting));
  const bool in_duel = state_.challenger && state_.ending == SearchEnding::searching;
  if (!in_duel || setting != whose_turn()) {
    state_.measurements.push_back(
        {.setting = setting, .score = score, .standard_error = standard_error});
    return {};
  }
  state_.turns.push_back(on_scale(options_.scale, score));
  switch (judge_duel(state_.turns).result) {
    case DuelResult::undecided:
      break;
    case DuelResult::challenger_wins:
      state_.ending = SearchEnding::challenger_won;
      break;
    case DuelResult::default_stays:
      state_.ending = SearchEnding::default_stays;
      break;
  }
  return {};
}

Outcome Search::outcome() const {
  const auto judgement = judge_duel(state_.turns);
  const bool won = state_.ending == SearchEnding::challenger_won;
  const double gain = gain_on(options_.scale, judgement.gain);
  // The derivative of expm1, for the error of a share.
  const double slope = options_.scale == ScoreScale::relative ? 1 + gain : 1;
  return {.ending = state_.ending,
          .setting = won ? *state_.challenger : space_.fallback(),
          .samples = state_.measurements.size(),
          .turns = state_.turns.size(),
          .gain = gain,
          .gain_error = slope * judgement.gain_error,
          .chance = judgement.chance};
}

std::optional<BestSoFar> Search::best_so_far() const {
  const ResponseModel model(space_, state_.measurements, options_.scale);
  const auto best = model.best_group();
  if (best == model.groups().size()) return std::nullopt;
  const bool relative = options_.scale == ScoreScale::relative;
  return BestSoFar{
      .setting = model.groups()[best].setting,
      .score = relative ? std::exp(model.incumbent()) : model.incumbent(),
      .noise = relative ? std::expm1(model.noise()) : model.noise(),
  };
}

}  // namespace horo::autotune
