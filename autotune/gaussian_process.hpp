// SPDX-License-Identifier: Apache-2.0
// A Gaussian process: what measured points say about points that were not measured. The kernel is
// Matern's with smoothness 5/2 and one length scale per coordinate; docs/design/autotune.md says
// why. Pure.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace horo::autotune {

/// Measured points, one per row. Scores are in any unit with a mean near 0 and a deviation near 1.
struct MeasuredPoints {
  Eigen::MatrixXd points;
  Eigen::VectorXd scores;  ///< The mean of a point's replicates.
  /// How many measurements of ordinary precision a row counts for: its noise variance is the
  /// process's noise variance over this.
  Eigen::VectorXd precision;
  std::vector<bool> is_category;  ///< By coordinate: only equal or different counts, no distance.
  double replicate_squares = 0;   ///< Sum of weighted squared deviations from the points' means.
  double replicate_degrees = 0;   ///< Replicates beyond the first of each point.
};

/// Natural logarithms, because their optimum is then found by steps of one size.
struct HyperParameters {
  Eigen::VectorXd log_lengths;  ///< One per coordinate.
  double log_signal = 0;        ///< The function's variance.
  double log_noise = -4;        ///< The variance of one measurement.
};

/// The assumption about hyper-parameters before any measurement: each logarithm is normal.
struct HyperPrior {
  double length_mean = -0.5, length_deviation = 0.9;
  double signal_mean = 0, signal_deviation = 1;
  double noise_mean = -4, noise_deviation = 1.5;
};

struct Prediction {
  double mean = 0;
  double deviation = 0;  ///< The function's, without the noise of a further measurement.
};

/// Thread: immutable.
class GaussianProcess {
 public:
  GaussianProcess(MeasuredPoints measured, HyperParameters parameters);

  Prediction predict(const Eigen::VectorXd& point) const;

  /// One prediction per row of `points`; faster than one at a time.
  std::vector<Prediction> predict(const Eigen::MatrixXd& points) const;

  /// Covariances of the function between the rows of `a` and those of `b`, after the measurements.
  Eigen::MatrixXd posterior_covariances(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) const;

  /// Predictions of each measured row by the other rows, with the noise of that row's own mean.
  std::vector<Prediction> leave_one_out() const;

  const HyperParameters& parameters() const { return parameters_; }

  const MeasuredPoints& measured() const { return measured_; }

  /// False: the covariances could not be factorised even with jitter; predictions are the prior's.
  bool usable() const { return usable_; }

 private:
  MeasuredPoints measured_;
  HyperParameters parameters_;
  Eigen::MatrixXd factor_;   ///< Lower triangle; factor_ times its transpose is the covariance.
  Eigen::VectorXd weights_;  ///< The inverse covariance times the scores.
  bool usable_ = false;
};

/// Covariances of the rows of `a` with those of `b`, without noise.
Eigen::MatrixXd covariances(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                            const std::vector<bool>& is_category,
                            const HyperParameters& parameters);

/// Adds the noise of each row to the covariances of measured rows.
void add_noise(Eigen::MatrixXd& covariance, const Eigen::VectorXd& precision, double log_noise);

/// The lower Cholesky factor, with as little jitter on the diagonal as makes it possible. Returns
/// false if no jitter up to 1e-4 of the diagonal's mean does.
bool factorise(const Eigen::MatrixXd& covariance, Eigen::MatrixXd& factor);

}  // namespace horo::autotune
