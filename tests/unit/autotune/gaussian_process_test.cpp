// SPDX-License-Identifier: Apache-2.0
// Against closed forms of one and two points, and against scikit-learn.
#include "autotune/gaussian_process.hpp"

#include <cmath>
#include <numbers>

#include <catch2/catch.hpp>

#include "autotune/likelihood.hpp"
#include "tests/unit/autotune/reference_figures.hpp"

using namespace horo::autotune;
namespace reference = horo::reference;

namespace {

MeasuredPoints points_of(const std::vector<double>& coordinates, const std::vector<double>& scores,
                         std::size_t dimensions) {
  const auto rows = static_cast<Eigen::Index>(scores.size());
  const auto columns = static_cast<Eigen::Index>(dimensions);
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return {.points = Eigen::Map<const Rows>(coordinates.data(), rows, columns),
          .scores = Eigen::Map<const Eigen::VectorXd>(scores.data(), rows),
          .precision = Eigen::VectorXd::Ones(rows),
          .is_category = std::vector<bool>(dimensions)};
}

HyperParameters parameters_of(const std::vector<double>& lengths, double signal, double noise) {
  HyperParameters parameters{.log_lengths = Eigen::VectorXd(lengths.size()),
                             .log_signal = std::log(signal),
                             .log_noise = std::log(noise)};
  for (std::size_t i = 0; i < lengths.size(); ++i)
    parameters.log_lengths[static_cast<Eigen::Index>(i)] = std::log(lengths[i]);
  return parameters;
}

double matern(double distance) {
  const double scaled = std::sqrt(5.0) * distance;
  return (1 + scaled + scaled * scaled / 3) * std::exp(-scaled);
}

Eigen::VectorXd point_of(double x) {
  return Eigen::VectorXd::Constant(1, x);
}

MeasuredPoints reference_points() {
  return points_of(reference::kPoints, reference::kScores, 2);
}

HyperParameters reference_parameters() {
  return parameters_of(reference::kLengths, reference::kSignal[0], reference::kNoise[0]);
}

}  // namespace

TEST_CASE("one point predicts as its closed form says") {
  const GaussianProcess process(points_of({0.3}, {2}, 1), parameters_of({0.5}, 4, 1));
  const auto at = process.predict(point_of(0.3));
  CHECK(at.mean == Approx(4.0 / 5 * 2));
  CHECK(at.deviation == Approx(std::sqrt(4 - 16.0 / 5)));
  const double k = 4 * matern(0.4 / 0.5);
  const auto beside = process.predict(point_of(0.7));
  CHECK(beside.mean == Approx(k / 5 * 2));
  CHECK(beside.deviation == Approx(std::sqrt(4 - k * k / 5)));
  const auto far = process.predict(point_of(1000));
  CHECK(far.mean == Approx(0).margin(1e-12));
  CHECK(far.deviation == Approx(2));
}

TEST_CASE("two points predict as the inverse of a 2 by 2 matrix says") {
  const GaussianProcess process(points_of({0, 1}, {1, -2}, 1), parameters_of({0.8}, 1, 0.1));
  const double between = matern(1 / 0.8);
  const double near = matern(0.25 / 0.8);
  const double far = matern(0.75 / 0.8);
  const double determinant = 1.1 * 1.1 - between * between;
  const double first = (1.1 * near - between * far) / determinant;
  const double second = (1.1 * far - between * near) / determinant;
  const auto predicted = process.predict(point_of(0.25));
  CHECK(predicted.mean == Approx(first - 2 * second));
  CHECK(predicted.deviation == Approx(std::sqrt(1 - first * near - second * far)));
}

TEST_CASE("predictions and likelihood equal scikit-learn's") {
  const GaussianProcess process(reference_points(), reference_parameters());
  for (std::size_t i = 0; i < reference::kMeans.size(); ++i) {
    Eigen::VectorXd query(2);
    query << reference::kQueries[2 * i], reference::kQueries[2 * i + 1];
    CHECK(process.predict(query).mean == Approx(reference::kMeans[i]).epsilon(1e-7));
    CHECK(process.predict(query).deviation == Approx(reference::kDeviations[i]).epsilon(1e-6));
  }
  const auto likelihood = log_likelihood(reference_points(), reference_parameters(), nullptr);
  REQUIRE(likelihood);
  CHECK(likelihood->log_value == Approx(reference::kLikelihood[0]).epsilon(1e-8));
  CHECK(likelihood->gradient[2] == Approx(reference::kGradient[0]).epsilon(1e-6));
  CHECK(likelihood->gradient[0] == Approx(reference::kGradient[1]).epsilon(1e-6));
  CHECK(likelihood->gradient[1] == Approx(reference::kGradient[2]).epsilon(1e-6));
  CHECK(likelihood->gradient[3] == Approx(reference::kGradient[3]).epsilon(1e-6));
}

TEST_CASE("without a prior, the fit is as likely as scikit-learn's best of 20 starts") {
  constexpr double kWide = 1e4;
  const HyperPrior flat{
      .length_deviation = kWide, .signal_deviation = kWide, .noise_deviation = kWide};
  const auto fitted = fit_hyper_parameters(reference_points(), flat, 4);
  const auto likelihood = log_likelihood(reference_points(), fitted, nullptr);
  REQUIRE(likelihood);
  CHECK(likelihood->log_value > reference::kFittedLikelihood[0] - 2e-3);
  CHECK(likelihood->log_value < reference::kFittedLikelihood[0] + 1e-3);
}

TEST_CASE("the likelihood's gradient equals finite differences") {
  auto measured = reference_points();
  measured.points.col(1) = (measured.points.col(1).array() > 0.5).cast<double>();
  measured.is_category[1] = true;
  measured.precision << 1, 2, 1, 0.3, 1, 4, 1;
  measured.replicate_squares = 0.07;
  measured.replicate_degrees = 3;
  const HyperPrior prior;
  const auto parameters = parameters_of({0.3, 0.9}, 0.7, 0.03);
  const auto likelihood = log_likelihood(measured, parameters, &prior);
  REQUIRE(likelihood);
  constexpr double kStep = 1e-5;
  for (Eigen::Index i = 0; i < 4; ++i) {
    double values[2] = {};
    for (int side = 0; side < 2; ++side) {
      auto moved = parameters;
      double& number = i < 2 ? moved.log_lengths[i] : i == 2 ? moved.log_signal : moved.log_noise;
      number += side == 0 ? -kStep : kStep;
      values[side] = log_likelihood(measured, moved, &prior)->log_value;
    }
    CHECK(likelihood->gradient[i] == Approx((values[1] - values[0]) / (2 * kStep)).epsilon(1e-5));
  }
}

TEST_CASE("replicates as one row with their squares are as likely as rows of their own") {
  // Both sides differ by a constant, so the differences between two noises must be equal.
  auto rows = points_of({0.2, 0.2, 0.2, 0.8}, {1, 1.4, 0.9, -1}, 1);
  auto grouped = points_of({0.2, 0.8}, {1.1, -1}, 1);
  grouped.precision << 3, 1;
  grouped.replicate_degrees = 2;
  grouped.replicate_squares = 0.1 * 0.1 + 0.3 * 0.3 + 0.2 * 0.2;
  const auto difference = [](const MeasuredPoints& measured) {
    return log_likelihood(measured, parameters_of({0.5}, 1, 0.3), nullptr)->log_value -
           log_likelihood(measured, parameters_of({0.5}, 1, 0.02), nullptr)->log_value;
  };
  CHECK(difference(grouped) == Approx(difference(rows)).epsilon(1e-6));
}

TEST_CASE("categories are either equal or different, however far apart their coordinates are") {
  auto measured = points_of({0.1, 0.5, 0.9}, {1, 0, 0}, 1);
  measured.is_category[0] = true;
  const auto k = covariances(measured.points, measured.points, measured.is_category,
                             parameters_of({0.7}, 1, 0.1));
  CHECK(k(0, 1) == Approx(matern(1 / 0.7)));
  CHECK(k(0, 2) == Approx(k(0, 1)));
}

TEST_CASE("a matrix that cannot be factorised makes the process unusable, not wrong") {
  auto measured = points_of({0.1, 0.9}, {1, 2}, 1);
  measured.precision[0] = std::nan("");
  const GaussianProcess process(measured, parameters_of({0.5}, 1, 0.1));
  CHECK_FALSE(process.usable());
  CHECK(process.predict(point_of(0.5)).mean == 0);
  CHECK_FALSE(log_likelihood(measured, parameters_of({0.5}, 1, 0.1), nullptr));
}

TEST_CASE("equal points without noise are made factorisable by jitter") {
  const GaussianProcess process(points_of({0.4, 0.4, 0.4}, {1, 1, 1}, 1),
                                parameters_of({0.5}, 1, 1e-30));
  CHECK(process.usable());
  CHECK(process.predict(point_of(0.4)).mean == Approx(1).epsilon(1e-3));
}

TEST_CASE("each point's prediction by the others equals that of a process without it") {
  const auto all = points_of({0.1, 0.4, 0.8}, {1, 0.5, -1}, 1);
  const auto parameters = parameters_of({0.5}, 1, 0.1);
  const auto left_out = GaussianProcess(all, parameters).leave_one_out();
  const GaussianProcess without(points_of({0.1, 0.8}, {1, -1}, 1), parameters);
  const auto direct = without.predict(point_of(0.4));
  CHECK(left_out[1].mean == Approx(direct.mean));
  CHECK(left_out[1].deviation == Approx(std::hypot(direct.deviation, std::sqrt(0.1))));
}
