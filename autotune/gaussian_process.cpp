// SPDX-License-Identifier: Apache-2.0
#include "autotune/gaussian_process.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "base/result.hpp"

namespace horo::autotune {

namespace {

/// Coordinates in units of their length scales. A category has no scale here.
Eigen::MatrixXd in_lengths(const Eigen::MatrixXd& points, const std::vector<bool>& is_category,
                           const HyperParameters& parameters) {
  Eigen::MatrixXd scaled = points;
  for (Eigen::Index j = 0; j < scaled.cols(); ++j) {
    if (!is_category[static_cast<std::size_t>(j)])
      scaled.col(j) *= std::exp(-parameters.log_lengths[j]);
  }
  return scaled;
}

double squared_distance(const Eigen::MatrixXd& a, Eigen::Index i, const Eigen::MatrixXd& b,
                        Eigen::Index k, const std::vector<bool>& is_category,
                        const Eigen::VectorXd& category_squares) {
  double sum = 0;
  for (Eigen::Index j = 0; j < a.cols(); ++j) {
    const double difference = a(i, j) - b(k, j);
    if (!is_category[static_cast<std::size_t>(j)]) {
      sum += difference * difference;
    } else if (std::abs(difference) > 1e-9) {
      sum += category_squares[j];
    }
  }
  return sum;
}

}  // namespace

Eigen::MatrixXd covariances(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                            const std::vector<bool>& is_category,
                            const HyperParameters& parameters) {
  const auto left = in_lengths(a, is_category, parameters);
  const auto right = in_lengths(b, is_category, parameters);
  const Eigen::VectorXd category_squares = (-2 * parameters.log_lengths).array().exp();
  const double signal = std::exp(parameters.log_signal);
  Eigen::MatrixXd result(a.rows(), b.rows());
  for (Eigen::Index k = 0; k < b.rows(); ++k) {
    for (Eigen::Index i = 0; i < a.rows(); ++i) {
      const double scaled =
          std::sqrt(5 * squared_distance(left, i, right, k, is_category, category_squares));
      result(i, k) = signal * (1 + scaled + scaled * scaled / 3) * std::exp(-scaled);
    }
  }
  return result;
}

void add_noise(Eigen::MatrixXd& covariance, const Eigen::VectorXd& precision, double log_noise) {
  covariance.diagonal().array() += std::exp(log_noise) / precision.array();
}

bool factorise(const Eigen::MatrixXd& covariance, Eigen::MatrixXd& factor) {
  const double scale = covariance.rows() == 0 ? 1 : covariance.diagonal().mean();
  if (!std::isfinite(scale)) return false;
  for (double jitter = 1e-12; jitter < 2e-4; jitter *= 100) {
    Eigen::MatrixXd attempt = covariance;
    attempt.diagonal().array() += jitter * scale;
    const Eigen::LLT<Eigen::MatrixXd> decomposition(attempt);
    if (decomposition.info() != Eigen::Success) continue;
    factor = decomposition.matrixL();
    if (factor.allFinite()) return true;
  }
  return false;
}

GaussianProcess::GaussianProcess(MeasuredPoints measured, HyperParameters parameters)
    : measured_(std::move(measured)), parameters_(std::move(parameters)) {
  HORO_CHECK(measured_.points.rows() == measured_.scores.size());
  HORO_CHECK(measured_.points.rows() == measured_.precision.size());
  auto covariance =
      covariances(measured_.points, measured_.points, measured_.is_category, parameters_);
  add_noise(covariance, measured_.precision, parameters_.log_noise);
  usable_ = factorise(covariance, factor_);
  if (!usable_) return;
  weights_ = factor_.triangularView<Eigen::Lower>().solve(measured_.scores);
  factor_.triangularView<Eigen::Lower>().transpose().solveInPlace(weights_);
}

Prediction GaussianProcess::predict(const Eigen::VectorXd& point) const {
  const Eigen::MatrixXd row = point.transpose();
  return predict(row).front();
}

std::vector<Prediction> GaussianProcess::predict(const Eigen::MatrixXd& points) const {
  const double signal = std::exp(parameters_.log_signal);
  std::vector<Prediction> result(static_cast<std::size_t>(points.rows()),
                                 Prediction{.mean = 0, .deviation = std::sqrt(signal)});
  if (!usable_ || measured_.points.rows() == 0) return result;
  Eigen::MatrixXd with = covariances(measured_.points, points, measured_.is_category, parameters_);
  const Eigen::VectorXd means = with.transpose() * weights_;
  factor_.triangularView<Eigen::Lower>().solveInPlace(with);
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    auto& one = result[static_cast<std::size_t>(i)];
    one.mean = means[i];
    one.deviation = std::sqrt(std::max(0.0, signal - with.col(i).squaredNorm()));
  }
  return result;
}

Eigen::MatrixXd GaussianProcess::posterior_covariances(const Eigen::MatrixXd& a,
                                                       const Eigen::MatrixXd& b) const {
  Eigen::MatrixXd result = covariances(a, b, measured_.is_category, parameters_);
  if (!usable_ || measured_.points.rows() == 0) return result;
  Eigen::MatrixXd left = covariances(measured_.points, a, measured_.is_category, parameters_);
  Eigen::MatrixXd right = covariances(measured_.points, b, measured_.is_category, parameters_);
  factor_.triangularView<Eigen::Lower>().solveInPlace(left);
  factor_.triangularView<Eigen::Lower>().solveInPlace(right);
  return result - left.transpose() * right;
}

std::vector<Prediction> GaussianProcess::leave_one_out() const {
  const auto rows = measured_.points.rows();
  std::vector<Prediction> result(static_cast<std::size_t>(rows));
  if (!usable_) return result;
  Eigen::MatrixXd inverse = Eigen::MatrixXd::Identity(rows, rows);
  factor_.triangularView<Eigen::Lower>().solveInPlace(inverse);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const double precision = inverse.col(i).squaredNorm();  // The diagonal of the inverse.
    auto& one = result[static_cast<std::size_t>(i)];
    one.mean = measured_.scores[i] - weights_[i] / precision;
    one.deviation = std::sqrt(1 / precision);
  }
  return result;
}

}  // namespace horo::autotune
