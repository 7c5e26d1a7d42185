// SPDX-License-Identifier: Apache-2.0
#include "autotune/response_model.hpp"

#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include "autotune/chance/draws.hpp"
#include "autotune/replicates.hpp"

using namespace horo::autotune;

namespace {

SearchSpace line() {
  return std::move(SearchSpace::make(
                       {{.name = "x", .range = RealRange{.least = 0, .most = 1}, .fallback = 0.5}}))
      .value();
}

double hill(double x) {
  return 100 - 40 * (x - 0.4) * (x - 0.4);
}

std::vector<Measurement> measured_hill() {
  std::vector<Measurement> all;
  for (int i = 0; i <= 10; ++i) all.push_back({.setting = {i / 10.0}, .score = hill(i / 10.0)});
  return all;
}

double best_x(const ResponseModel& model) {
  return std::get<double>(model.groups()[model.best_group()].setting[0]);
}

}  // namespace

TEST_CASE("replicates of a setting become one group, and show the noise") {
  const auto space = line();
  RandomDraws draws(3);
  std::vector<Measurement> all;
  for (int i = 0; i < 40; ++i) {
    const double x = (i % 5) / 4.0;
    all.push_back({.setting = {x}, .score = hill(x) + 2 * draws.normal()});
  }
  const ResponseModel model(space, all, ScoreScale::linear);
  CHECK(model.groups().size() == 5);
  CHECK(model.groups()[0].count == 8);
  CHECK(model.noise() == Approx(2).epsilon(0.3));
}

TEST_CASE("a stated standard error weighs a measurement") {
  const auto replicates = gather_replicates(line(),
                                            {{.setting = {0.1}, .score = 1, .standard_error = 1},
                                             {.setting = {0.2}, .score = 2, .standard_error = 1},
                                             {.setting = {0.3}, .score = 2, .standard_error = 0.5},
                                             {.setting = {0.4}, .score = 2, .standard_error = 0.1},
                                             {.setting = {0.5}, .score = 2, .standard_error = 4},
                                             {.setting = {0.6}, .score = 2, .standard_error = 99}},
                                            ScoreScale::linear);
  CHECK(replicates.standard_error == 1);
  CHECK(replicates.groups[0].precision == 1);
  CHECK(replicates.groups[2].precision == 4);
  CHECK(replicates.groups[3].precision == 4);
  CHECK(replicates.groups[4].precision == Approx(1.0 / 16));
  CHECK(replicates.groups[5].precision == Approx(1.0 / 64));
}

TEST_CASE("equal scores, one point and no point give a model without a gain") {
  const auto space = line();
  std::vector<Measurement> equal;
  for (int i = 0; i < 6; ++i) equal.push_back({.setting = {i / 5.0}, .score = 7});
  const ResponseModel model(space, equal, ScoreScale::relative);
  CHECK(std::exp(model.incumbent()) == Approx(7));
  CHECK(model.noise() < 1e-6);
  const ResponseModel one(space, {{.setting = {0.5}, .score = 3}}, ScoreScale::linear);
  CHECK(one.best_group() == 0);
  CHECK(one.incumbent() == Approx(3));
  const ResponseModel none(space, {}, ScoreScale::linear);
  CHECK(none.best_group() == 0);
  CHECK(none.groups().empty());
}

TEST_CASE("a failed setting counts as the worst and is never the best") {
  const auto space = line();
  auto all = measured_hill();
  all.push_back({.setting = {0.45}, .score = std::numeric_limits<double>::quiet_NaN()});
  const ResponseModel model(space, all, ScoreScale::linear);
  CHECK(model.groups().back().failed);
  CHECK(model.groups().back().mean == Approx(hill(1)));
  CHECK(best_x(model) == Approx(0.4).margin(0.11));
  CHECK(model.incumbent() == Approx(100).margin(1));  // Its neighbours are believed.
  const ResponseModel failed(space, {{.setting = {0.5}, .score = -1}}, ScoreScale::relative);
  CHECK(failed.best_group() == failed.groups().size());
}

TEST_CASE("a single outlier does not become the best") {
  const auto space = line();
  auto all = measured_hill();
  all.push_back({.setting = {0.95}, .score = 150});
  CHECK(best_x(ResponseModel(space, all, ScoreScale::linear)) == Approx(0.4).margin(0.15));
}

TEST_CASE("a replicate far from three others counts less") {
  const auto space = line();
  std::vector<Measurement> all;
  for (const double score : {10.0, 10.1, 9.9, 10.05, 3.0})
    all.push_back({.setting = {0.5}, .score = score});
  const auto replicates = gather_replicates(space, all, ScoreScale::linear);
  CHECK(replicates.groups[0].mean > 9.9);
}

TEST_CASE("a disaster in one corner leaves the differences near the best visible") {
  const auto space = line();
  auto all = measured_hill();
  all[10].score = -1e6;
  const ResponseModel model(space, all, ScoreScale::linear);
  CHECK(best_x(model) == Approx(0.4).margin(0.11));
  CHECK(model.spread() < 100);
}

TEST_CASE("a lucky score that says how noisy it is does not become the best") {
  std::vector<Measurement> all;
  for (int i = 0; i <= 5; ++i)
    all.push_back({.setting = {i / 10.0}, .score = hill(i / 10.0), .standard_error = 0.5});
  all.push_back({.setting = {0.9}, .score = 101, .standard_error = 4});
  CHECK(best_x(ResponseModel(line(), all, ScoreScale::linear)) == Approx(0.4));
  // As precise as the others, it is believed.
  all.back().standard_error = 0.5;
  CHECK(best_x(ResponseModel(line(), all, ScoreScale::linear)) == Approx(0.9));
}
