// SPDX-License-Identifier: Apache-2.0
// Chooses the next point to measure: the one whose measurement is expected to raise the best
// predicted mean most. Pure.
#pragma once

#include <vector>

#include "autotune/chance/draws.hpp"
#include "autotune/response_model.hpp"
#include "autotune/search_space.hpp"

namespace horo::autotune {

/// By how much a point is expected to exceed `incumbent`; where it is worse, it counts as 0.
double expected_improvement(const Prediction& prediction, double incumbent);

/// The logarithm of the expected improvement. It is finite where the improvement itself is too
/// small for a double, so that such points can still be compared.
double log_expected_improvement(const Prediction& prediction, double incumbent);

/// A category of a free dimension that measurements have ruled out.
struct RuledOut {
  std::size_t coordinate = 0;
  double unit = 0;  ///< The category's coordinate.
};

struct NextPoint {
  Setting setting;
  double gain = 0;  ///< The largest expected improvement of any point, on the model's scale.
  std::vector<RuledOut> ruled_out;
};

/// Searches the whole cube by even and random candidates, and around the best of them.
NextPoint best_next_point(const SearchSpace& space, const ResponseModel& model, RandomDraws& draws);

}  // namespace horo::autotune
