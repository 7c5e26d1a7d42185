// SPDX-License-Identifier: Apache-2.0
// A search for the best setting. The caller asks for a setting, measures it and tells its score,
// until the search has settled. There is no clock and no thread here: the same seed and the same
// scores give the same settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "autotune/measurement.hpp"
#include "autotune/search_space.hpp"
#include "base/result.hpp"

namespace horo::autotune {

struct SearchOptions {
  std::uint64_t seed = 0;
  ScoreScale scale = ScoreScale::relative;
  std::size_t most_samples = 20;  ///< Without the turns of the duel, which are at most 22.
  /// The search ends when no point is expected to gain as much: a share of the score, or on the
  /// linear scale of the deviation of the scores.
  double least_gain = 0.002;
  std::vector<Setting> hints;  ///< Tried first, after the default: winners of earlier jobs.
  /// Settings that are spread over the space before the model chooses. Nothing: as many as the
  /// number of dimensions asks for.
  std::optional<std::size_t> even_points;
};

enum class SearchStage : std::uint8_t {
  first_points,  ///< The default, hints, each category, points spread evenly.
  model,         ///< Points whose measurement is worth most.
  duel,          ///< Turns of the default and of the best setting.
  settled,
};

enum class SearchEnding : std::uint8_t {
  searching,
  nothing_to_tune,   ///< Every dimension is fixed.
  budget_too_short,  ///< No setting besides the default was measured.
  default_is_best,   ///< No measured setting is predicted to be better than the default.
  default_stays,     ///< A setting looked better, and did not win the duel.
  challenger_won,
};

std::string_view name(SearchStage stage);
std::string_view name(SearchEnding ending);

struct Proposal {
  SearchStage stage = SearchStage::settled;
  Setting setting;           ///< To measure; or, when settled, to use.
  double expected_gain = 0;  ///< Only of the stage `model`; as `least_gain`.
};

/// Everything that a search has learnt, as a plain value: `resume` continues exactly there.
struct SearchState {
  std::vector<Measurement> measurements;
  std::optional<Setting> challenger;  ///< Since the duel began.
  std::vector<double> turns;          ///< Scores of the duel's turns.
  SearchEnding ending = SearchEnding::searching;

  friend bool operator==(const SearchState&, const SearchState&) = default;
};

struct Outcome {
  SearchEnding ending = SearchEnding::searching;
  Setting setting;  ///< To use: the default unless a challenger won.
  std::size_t samples = 0;
  std::size_t turns = 0;  ///< Measurements in the duel.
  /// How much better the challenger was in the duel: a share of the default's score on the relative
  /// scale, a difference of scores on the linear one.
  double gain = 0;
  double gain_error = 0;
  double chance = 1;  ///< The probability of such a gain if the challenger were no better.
};

/// The best measured setting as the model sees it now.
struct BestSoFar {
  Setting setting;
  double score = 0;  ///< Predicted.
  double noise = 0;  ///< Deviation of one measurement, in the unit of Outcome::gain.
};

/// Thread: owner.
class Search {
 public:
  /// Fails: invalid_argument (a hint outside the space, no samples, a gain below 0).
  static Result<Search> make(SearchSpace space, SearchOptions options);

  /// Continues a search. Fails: invalid_argument (a setting of `state` is not in the space).
  static Result<Search> resume(SearchSpace space, SearchOptions options, SearchState state);

  /// The next setting to measure. Asked again without `tell`, the answer is the same.
  Proposal ask();

  /// Adds a measurement, also of a setting that was not asked for. In a duel, a measurement of the
  /// setting whose turn it is counts as that turn. A score that is not finite, or not above 0 on
  /// the relative scale, says that the setting failed. Fails: invalid_argument (not in the space).
  Status tell(const Setting& setting, double score, double standard_error);

  Outcome outcome() const;

  /// Nothing before the first score.
  std::optional<BestSoFar> best_so_far() const;

  /// With fewer samples no search of this space and budget ends by itself.
  std::size_t least_samples() const;

  const SearchSpace& space() const { return space_; }

  const SearchState& state() const { return state_; }

 private:
  Search(SearchSpace space, SearchOptions options, SearchState state);

  std::optional<Setting> next_first_point() const;
  std::optional<Proposal> next_by_model() const;
  const Setting& whose_turn() const;
  void begin_duel();

  SearchSpace space_;
  SearchOptions options_;
  std::vector<Setting> first_points_;
  SearchState state_;
};

}  // namespace horo::autotune
