// SPDX-License-Identifier: Apache-2.0
#include "autotune/acquisition.hpp"

#include <cmath>
#include <numbers>

#include <catch2/catch.hpp>

#include "autotune/chance/probability.hpp"

using namespace horo::autotune;

namespace {

SearchSpace space_of(std::vector<Dimension> dimensions) {
  return std::move(SearchSpace::make(std::move(dimensions))).value();
}

Dimension real(const char* name) {
  return {.name = name, .range = RealRange{.least = 0, .most = 1}, .fallback = 0.5};
}

}  // namespace

TEST_CASE("expected improvement has its closed forms") {
  // Where mean and incumbent are equal: deviation / sqrt(2 pi).
  CHECK(expected_improvement({.mean = 3, .deviation = 2}, 3) ==
        Approx(2 / std::sqrt(2 * std::numbers::pi)));
  CHECK(expected_improvement({.mean = 1, .deviation = 1}, 0) ==
        Approx(normal_cumulative(1) + normal_density(1)));
  CHECK(expected_improvement({.mean = 2, .deviation = 0}, 1.5) == 0.5);
  CHECK(expected_improvement({.mean = 1, .deviation = 0}, 1.5) == 0);
}

TEST_CASE("the logarithm of a small improvement stays finite and in order") {
  const auto rating = [](double mean) {
    return log_expected_improvement({.mean = mean, .deviation = 1}, 0);
  };
  CHECK(rating(0.5) == Approx(std::log(expected_improvement({.mean = 0.5, .deviation = 1}, 0))));
  // Both formulas meet where one replaces the other.
  CHECK(rating(-10.0001) == Approx(rating(-9.9999)).epsilon(1e-4));
  CHECK(expected_improvement({.mean = -60, .deviation = 1}, 0) == 0);
  CHECK(std::isfinite(rating(-60)));
  CHECK(rating(-60) > rating(-61));
}

TEST_CASE("the next point lies between neighbours of the best, near the maximum of a parabola") {
  const auto space = space_of({real("x")});
  std::vector<Measurement> measurements;
  for (const double x : {0.0, 0.25, 0.5, 0.75, 1.0})
    measurements.push_back({.setting = {x}, .score = 1 - (x - 0.6) * (x - 0.6)});
  const ResponseModel model(space, measurements, ScoreScale::linear);
  RandomDraws draws(1);
  const auto next = best_next_point(space, model, draws);
  CHECK(std::get<double>(next.setting[0]) == Approx(0.6).margin(0.08));
  CHECK(next.gain > 0);
}

TEST_CASE("a category that is worse by far is ruled out") {
  const auto space = space_of(
      {{.name = "path", .range = Categories{{"slow", "fast"}}, .fallback = "slow"}, real("x")});
  std::vector<Measurement> measurements;
  for (const double x : {0.1, 0.3, 0.5, 0.7, 0.9}) {
    measurements.push_back({.setting = {"slow", x}, .score = 10 + x});
    measurements.push_back({.setting = {"fast", x}, .score = 30 + x});
  }
  const ResponseModel model(space, measurements, ScoreScale::linear);
  RandomDraws draws(1);
  const auto next = best_next_point(space, model, draws);
  REQUIRE(next.ruled_out.size() == 1);
  CHECK(next.ruled_out[0].unit == 0.25);
  CHECK(std::get<std::string>(next.setting[0]) == "fast");
}
