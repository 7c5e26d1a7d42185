// SPDX-License-Identifier: Apache-2.0
#include "autotune/likelihood.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <LBFGSB.h>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "autotune/chance/draws.hpp"

namespace horo::autotune {

namespace {

constexpr double kLeastLength = 0.02, kMostLength = 20;
constexpr double kLeastSignal = 1e-4, kMostSignal = 100;
constexpr double kLeastNoise = 1e-8, kMostNoise = 10;
constexpr double kLeastCurvature = 0.5;
constexpr double kLeastWeight = 0.02, kMostWeight = 3;
constexpr int kMostIterations = 25;
constexpr int kMostEvaluations = 40;  ///< From one start.

HyperParameters from_vector(const Eigen::VectorXd& vector) {
  const auto count = vector.size() - 2;
  return {.log_lengths = vector.head(count),
          .log_signal = vector[count],
          .log_noise = vector[count + 1]};
}

/// The squared difference of two points in one coordinate, in length scales.
double squared_part(const MeasuredPoints& measured, Eigen::Index a, Eigen::Index b, Eigen::Index j,
                    double inverse_square) {
  const double difference = measured.points(a, j) - measured.points(b, j);
  if (!measured.is_category[static_cast<std::size_t>(j)])
    return difference * difference * inverse_square;
  return std::abs(difference) > 1e-9 ? inverse_square : 0;
}

/// Half the sum over all pairs of `sensitivity` times the covariance's derivative by each length.
void add_length_gradient(const MeasuredPoints& measured, const HyperParameters& parameters,
                         const Eigen::MatrixXd& sensitivity, Eigen::VectorXd& gradient) {
  const auto coordinates = parameters.log_lengths.size();
  const Eigen::VectorXd inverse_squares = (-2 * parameters.log_lengths).array().exp();
  const double signal = std::exp(parameters.log_signal);
  Eigen::VectorXd parts(coordinates);
  for (Eigen::Index a = 0; a < measured.points.rows(); ++a) {
    for (Eigen::Index b = 0; b < a; ++b) {
      for (Eigen::Index j = 0; j < coordinates; ++j)
        parts[j] = squared_part(measured, a, b, j, inverse_squares[j]);
      const double scaled = std::sqrt(5 * parts.sum());
      const double slope = signal * 5 / 3 * (1 + scaled) * std::exp(-scaled);
      // Each pair stands twice in the symmetric matrix, which cancels the half.
      gradient.head(coordinates) += sensitivity(a, b) * slope * parts;
    }
  }
}

/// The logarithm of a normal density, up to a constant, and its derivative.
void add_normal(double value, double mean, double deviation, double& log_value, double& gradient) {
  const double z = (value - mean) / deviation;
  log_value -= z * z / 2;
  gradient -= z / deviation;
}

void add_prior(const HyperParameters& parameters, const HyperPrior& prior, Likelihood& result) {
  const auto count = parameters.log_lengths.size();
  for (Eigen::Index j = 0; j < count; ++j) {
    add_normal(parameters.log_lengths[j], prior.length_mean, prior.length_deviation,
               result.log_value, result.gradient[j]);
  }
  add_normal(parameters.log_signal, prior.signal_mean, prior.signal_deviation, result.log_value,
             result.gradient[count]);
  add_normal(parameters.log_noise, prior.noise_mean, prior.noise_deviation, result.log_value,
             result.gradient[count + 1]);
}

/// The negative likelihood, as L-BFGS-B calls it. It keeps the best point, because the minimiser
/// gives up by an exception where it can make no step.
class NegativeLikelihood {
 public:
  NegativeLikelihood(const MeasuredPoints& measured, const HyperPrior& prior)
      : measured_(measured), prior_(prior) {}

  void begin_start() { evaluations_ = 0; }

  double operator()(const Eigen::VectorXd& vector, Eigen::VectorXd& gradient) {
    if (++evaluations_ > kMostEvaluations) throw std::runtime_error("enough evaluations");
    const auto likelihood = log_likelihood(measured_, from_vector(vector), &prior_);
    if (!likelihood || !std::isfinite(likelihood->log_value) || !likelihood->gradient.allFinite())
      throw std::runtime_error("no likelihood here");
    gradient = -likelihood->gradient;
    if (-likelihood->log_value < best_value_) {
      best_value_ = -likelihood->log_value;
      best_ = vector;
    }
    return -likelihood->log_value;
  }

  /// Empty if no point had a likelihood.
  const Eigen::VectorXd& best() const { return best_; }

 private:
  const MeasuredPoints& measured_;
  const HyperPrior& prior_;
  int evaluations_ = 0;
  double best_value_ = std::numeric_limits<double>::infinity();
  Eigen::VectorXd best_;
};

/// The prior's means, then points around them.
Eigen::VectorXd start_point(Eigen::Index coordinates, const HyperPrior& prior, int start) {
  Eigen::VectorXd vector(coordinates + 2);
  const auto around = [&](double mean, double deviation, Eigen::Index j) {
    if (start == 0) return mean;
    const auto dimension = static_cast<std::size_t>(j) % kHaltonDimensions;
    const auto index = static_cast<std::size_t>(start - 1);
    return mean + deviation * 2 * (2 * halton(index, dimension) - 1);
  };
  for (Eigen::Index j = 0; j < coordinates; ++j)
    vector[j] = around(prior.length_mean, prior.length_deviation, j);
  vector[coordinates] = around(prior.signal_mean, prior.signal_deviation, coordinates);
  vector[coordinates + 1] = around(prior.noise_mean, prior.noise_deviation, coordinates + 1);
  return vector;
}

struct Bounds {
  Eigen::VectorXd least;
  Eigen::VectorXd most;
};

Bounds bounds_of(Eigen::Index coordinates) {
  Bounds bounds{.least = Eigen::VectorXd(coordinates + 2),
                .most = Eigen::VectorXd(coordinates + 2)};
  bounds.least << Eigen::VectorXd::Constant(coordinates, std::log(kLeastLength)),
      std::log(kLeastSignal), std::log(kLeastNoise);
  bounds.most << Eigen::VectorXd::Constant(coordinates, std::log(kMostLength)),
      std::log(kMostSignal), std::log(kMostNoise);
  return bounds;
}

HyperParameters fit_from(const MeasuredPoints& measured, const HyperPrior& prior,
                         const std::vector<Eigen::VectorXd>& starts) {
  const auto bounds = bounds_of(measured.points.cols());
  LBFGSpp::LBFGSBParam<double> options;
  options.epsilon = 1e-3;
  options.epsilon_rel = 1e-4;
  options.delta = 1e-6;
  options.max_iterations = kMostIterations;
  NegativeLikelihood negative(measured, prior);
  for (auto vector : starts) {
    if (measured.points.rows() == 0) break;
    double value = 0;
    negative.begin_start();
    try {
      LBFGSpp::LBFGSBSolver<double> solver(options);
      solver.minimize(negative, vector, value, bounds.least, bounds.most);
    } catch (const std::exception&) {
      // The best point so far is kept in `negative`.
    }
  }
  if (negative.best().size() != 0) return from_vector(negative.best());
  return from_vector(starts.front().cwiseMax(bounds.least).cwiseMin(bounds.most));
}

Eigen::VectorXd to_vector(const HyperParameters& parameters) {
  Eigen::VectorXd vector(parameters.log_lengths.size() + 2);
  vector << parameters.log_lengths, parameters.log_signal, parameters.log_noise;
  return vector;
}

/// The second derivatives of the negative likelihood, by differences of its gradient; nothing where
/// it has none.
std::optional<Eigen::MatrixXd> curvature(const MeasuredPoints& measured, const HyperPrior& prior,
                                         const Eigen::VectorXd& at) {
  constexpr double kStep = 1e-3;
  Eigen::MatrixXd result(at.size(), at.size());
  for (Eigen::Index i = 0; i < at.size(); ++i) {
    Eigen::VectorXd up = at, down = at;
    up[i] += kStep;
    down[i] -= kStep;
    const auto above = log_likelihood(measured, from_vector(up), &prior);
    const auto below = log_likelihood(measured, from_vector(down), &prior);
    if (!above || !below) return std::nullopt;
    result.col(i) = (below->gradient - above->gradient) / (2 * kStep);
  }
  return Eigen::MatrixXd((result + result.transpose()) / 2);
}

}  // namespace

std::optional<Likelihood> log_likelihood(const MeasuredPoints& measured,
                                         const HyperParameters& parameters,
                                         const HyperPrior* prior) {
  const auto rows = measured.points.rows();
  const auto coordinates = parameters.log_lengths.size();
  const auto function =
      covariances(measured.points, measured.points, measured.is_category, parameters);
  Eigen::MatrixXd covariance = function;
  add_noise(covariance, measured.precision, parameters.log_noise);
  Eigen::MatrixXd factor;
  if (!factorise(covariance, factor)) return std::nullopt;
  Eigen::MatrixXd inverse = Eigen::MatrixXd::Identity(rows, rows);
  factor.triangularView<Eigen::Lower>().solveInPlace(inverse);
  inverse = inverse.transpose() * inverse.triangularView<Eigen::Lower>();
  const Eigen::VectorXd weights = inverse * measured.scores;
  Likelihood result;
  result.log_value = -measured.scores.dot(weights) / 2 - factor.diagonal().array().log().sum() -
                     static_cast<double>(rows) / 2 * std::log(2 * std::numbers::pi);
  const Eigen::MatrixXd sensitivity = weights * weights.transpose() - inverse;
  result.gradient = Eigen::VectorXd::Zero(coordinates + 2);
  add_length_gradient(measured, parameters, sensitivity, result.gradient);
  result.gradient[coordinates] = sensitivity.cwiseProduct(function).sum() / 2;
  const double noise = std::exp(parameters.log_noise);
  result.gradient[coordinates + 1] =
      (sensitivity.diagonal().array() * noise / measured.precision.array()).sum() / 2;
  // Deviations of replicates from their mean: a normal likelihood of the noise alone.
  const double ratio = measured.replicate_squares / noise;
  result.log_value -= (measured.replicate_degrees * parameters.log_noise + ratio) / 2;
  result.gradient[coordinates + 1] += (ratio - measured.replicate_degrees) / 2;
  if (prior != nullptr) add_prior(parameters, *prior, result);
  return result;
}

HyperParameters fit_hyper_parameters(const MeasuredPoints& measured, const HyperPrior& prior,
                                     int starts) {
  std::vector<Eigen::VectorXd> points;
  for (int start = 0; start < starts; ++start)
    points.push_back(start_point(measured.points.cols(), prior, start));
  return fit_from(measured, prior, points);
}

std::vector<WeightedParameters> likely_hyper_parameters(const MeasuredPoints& measured,
                                                        const HyperPrior& prior,
                                                        const HyperParameters& best, int count) {
  std::vector<WeightedParameters> result;
  const auto centre = to_vector(best);
  const auto top = log_likelihood(measured, best, &prior);
  const auto curved = curvature(measured, prior, centre);
  if (!top || !curved || !curved->allFinite()) return result;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> axes(*curved);
  // Where the optimum lies at a bound the curvature may vanish; the prior's deviation is about 1.
  const Eigen::VectorXd deviations =
      axes.eigenvalues().cwiseMax(kLeastCurvature).cwiseSqrt().cwiseInverse();
  const auto bounds = bounds_of(centre.size() - 2);
  RandomDraws draws(1);
  for (int i = 0; i < count; ++i) {
    Eigen::VectorXd normal(centre.size());
    for (auto& one : normal) one = draws.normal();
    const Eigen::VectorXd moved = (centre + axes.eigenvectors() * deviations.cwiseProduct(normal))
                                      .cwiseMax(bounds.least)
                                      .cwiseMin(bounds.most);
    const auto one = log_likelihood(measured, from_vector(moved), &prior);
    if (!one) continue;
    const double weight = std::exp(one->log_value - top->log_value + normal.squaredNorm() / 2);
    if (weight > kLeastWeight)
      result.push_back({.parameters = from_vector(moved), .weight = std::min(weight, kMostWeight)});
  }
  return result;
}

HyperParameters refit_hyper_parameters(const MeasuredPoints& measured, const HyperPrior& prior,
                                       const HyperParameters& before) {
  Eigen::VectorXd start(before.log_lengths.size() + 2);
  start << before.log_lengths, before.log_signal, before.log_noise;
  return fit_from(measured, prior, {start});
}

}  // namespace horo::autotune
