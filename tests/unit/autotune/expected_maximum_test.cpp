// SPDX-License-Identifier: Apache-2.0
#include "autotune/chance/expected_maximum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <catch2/catch.hpp>

#include "autotune/acquisition.hpp"
#include "autotune/chance/draws.hpp"
#include "autotune/chance/probability.hpp"

using namespace horo::autotune;

namespace {

/// By the trapezoidal rule, which is exact to many digits for such an integrand.
double integral(const std::vector<Line>& lines) {
  double sum = 0;
  constexpr double kStep = 1e-4;
  for (double z = -9; z < 9; z += kStep) {
    double most = -std::numeric_limits<double>::infinity();
    for (const auto& line : lines) most = std::max(most, line.at_zero + line.slope * z);
    sum += kStep * most * normal_density(z);
  }
  return sum;
}

}  // namespace

TEST_CASE("the expected maximum has its closed forms") {
  CHECK(expected_maximum({{.at_zero = 3, .slope = -2}}) == 3);
  // Two lines through one point add the difference of their slopes / sqrt(2 pi).
  CHECK(expected_maximum({{.at_zero = 1, .slope = -1}, {.at_zero = 1, .slope = 2}}) ==
        Approx(1 + 3 / std::sqrt(2 * std::numbers::pi)));
  // Against a level it is the expected improvement.
  CHECK(expected_maximum({{.at_zero = 0.7, .slope = 0}, {.at_zero = 0.2, .slope = 0.5}}) ==
        Approx(0.7 + expected_improvement({.mean = 0.2, .deviation = 0.5}, 0.7)));
  // Parallel lines: the higher one.
  CHECK(expected_maximum({{.at_zero = 1, .slope = 1}, {.at_zero = 4, .slope = 1}}) == 4);
}

TEST_CASE("the expected maximum of many lines is that of an integral") {
  RandomDraws draws(4);
  for (int i = 0; i < 20; ++i) {
    std::vector<Line> lines;
    for (std::size_t k = 0; k < 3 + draws.below(12); ++k)
      lines.push_back({.at_zero = draws.normal(), .slope = draws.normal()});
    CHECK(expected_maximum(lines) == Approx(integral(lines)).margin(1e-5));
  }
}
