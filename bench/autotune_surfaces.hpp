// SPDX-License-Identifier: Apache-2.0
// Functions on which searches are compared: known ones, and recordings of real runs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune/chance/draws.hpp"
#include "autotune/measurement.hpp"
#include "autotune/search_space.hpp"

namespace horo::bench {

/// Ends of a dimension in the unit that Horovod's tuner counts in.
struct RawRange {
  double least = 0;
  double most = 1;
  double unit = 1;  ///< Units of the space per raw unit: 1048576 for MB and a dimension in bytes.
};

/// The score of a sample, and its error.
struct Reading {
  double score = 0;
  double standard_error = 0;  ///< As the steps of the sample show it.
};

/// A sample whose score is normal around `truth`. Its error is estimated from kStepsOfSample steps.
Reading noisy_reading(double truth, double deviation, autotune::RandomDraws& draws);

inline constexpr int kStepsOfSample = 10;

struct Surface {
  std::string name;
  autotune::SearchSpace space;
  autotune::ScoreScale scale = autotune::ScoreScale::linear;
  std::vector<RawRange> raw;  ///< One per dimension; Horovod's tuner sees only this part of `wide`.
  /// Contains all that Horovod's tuner may try; empty: as `space`.
  std::optional<autotune::SearchSpace> wide;
  double best = 0;  ///< The greatest true score, or of a recording the grid's best.
  double unit = 1;  ///< Regret is (best - true score) / unit.
  std::function<double(const autotune::Setting&)> truth;
  std::function<Reading(const autotune::Setting&, autotune::RandomDraws&)> measure;
};

/// The space of fusion thresholds and cycle times, without a score.
Surface surface_of_fusion();

/// Branin, Hartmann-6, steps as fusion causes them, and a function that is equal everywhere.
std::vector<Surface> known_surfaces();

/// Reads lines "fusion_threshold_bytes,cycle_us,score", or with "small_message_bytes," before the
/// score, which then is a dimension of the surface. Several lines of one cell are repeats: a
/// measurement draws one of them, and the cell's true score is their median. A setting between
/// cells has the score of the nearest one. Exits with a message if the file cannot be read.
Surface recorded_surface(const std::string& path);

}  // namespace horo::bench
