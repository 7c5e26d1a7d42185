// SPDX-License-Identifier: Apache-2.0
// One measurement, and the scale on which scores are compared.
#pragma once

#include <cstdint>

#include "autotune/search_space.hpp"

namespace horo::autotune {

/// One measurement of a setting; a larger score is better.
struct Measurement {
  Setting setting;
  double score = 0;           ///< Not finite: the setting failed.
  double standard_error = 0;  ///< 0: unknown.

  friend bool operator==(const Measurement&, const Measurement&) = default;
};

enum class ScoreScale : std::uint8_t {
  relative,  ///< Scores are above 0, and 1 % counts the same everywhere: the model uses logarithms.
  linear,
};

/// A score in the model's scale, or NaN if it cannot be one.
double on_scale(ScoreScale scale, double score);

}  // namespace horo::autotune
