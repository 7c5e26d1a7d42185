// SPDX-License-Identifier: Apache-2.0
// What a search knows after some measurements: groups of replicates, made safe against outliers and
// failures, and a Gaussian process over them. Pure.
#pragma once

#include <vector>

#include "autotune/gaussian_process.hpp"
#include "autotune/measurement.hpp"
#include "autotune/search_space.hpp"

namespace horo::autotune {

/// All measurements of one setting. Values are on the model's scale.
struct MeasuredGroup {
  Setting setting;
  CubePoint point;
  double mean = 0;
  double precision = 0;  ///< How many measurements of ordinary precision it counts for.
  std::size_t count = 0;
  bool failed = false;  ///< No measurement has a score; the mean is then the worst of the others.
};

struct Replicates;

/// Thread: immutable.
class ResponseModel {
 public:
  ResponseModel(const SearchSpace& space, const std::vector<Measurement>& measurements,
                ScoreScale scale);

  /// Predictions of points of the cube, one per row, on the model's scale.
  std::vector<Prediction> predict(const std::vector<CubePoint>& points) const;

  /// By how much a further measurement at each of the points is expected to raise the best
  /// predicted mean among measured settings, that point included.
  std::vector<double> value_of_measuring(const std::vector<CubePoint>& points) const;

  const std::vector<MeasuredGroup>& groups() const { return groups_; }

  /// Index of the group with the best predicted mean that has not failed; groups().size() if none.
  std::size_t best_group() const { return best_group_; }

  /// The best group's predicted mean: what a further point must exceed.
  double incumbent() const { return incumbent_; }

  /// The deviation of a single measurement, on the model's scale.
  double noise() const;

  /// The deviation of the groups' means: the unit of the linear scale.
  double spread() const { return unit_; }

 private:
  MeasuredPoints standardised(double squares, double degrees) const;
  void fit(const Replicates& replicates);
  std::vector<double> values_by(const GaussianProcess& process,
                                const std::vector<CubePoint>& points) const;
  Eigen::MatrixXd rows_of(const std::vector<CubePoint>& points) const;
  void add_others(const MeasuredPoints& measured, const HyperPrior& prior);
  /// Lowers the precision of lone measurements that all others contradict; false if there is none.
  bool weigh_surprises(MeasuredPoints& measured) const;
  void find_best();

  std::vector<MeasuredGroup> groups_;
  std::vector<bool> is_category_;
  double centre_ = 0;
  double unit_ = 1;
  GaussianProcess process_;              ///< With the most likely hyper-parameters.
  std::vector<GaussianProcess> others_;  ///< With others that are about as likely.
  std::vector<double> weights_;          ///< They weigh `process_` and `others_`.
  std::size_t best_group_ = 0;
  double incumbent_ = 0;
};

}  // namespace horo::autotune
