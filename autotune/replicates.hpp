// SPDX-License-Identifier: Apache-2.0
// Brings measurements of the same setting together, and weighs them: outliers count less, failures
// count as the worst. Pure.
#pragma once

#include <vector>

#include "autotune/response_model.hpp"
#include "autotune/search_space.hpp"

namespace horo::autotune {

struct Replicates {
  std::vector<MeasuredGroup> groups;  ///< In the order of their first measurement.
  double squares =
      0;  ///< Weighted squared deviations of all measurements from their groups' means.
  double degrees = 0;         ///< Measurements beyond the first of each group.
  double standard_error = 0;  ///< The median of the known ones; 0: none is known.
};

Replicates gather_replicates(const SearchSpace& space, const std::vector<Measurement>& measurements,
                             ScoreScale scale);

/// The median; NaN of nothing.
double median_of(std::vector<double> numbers);

}  // namespace horo::autotune
