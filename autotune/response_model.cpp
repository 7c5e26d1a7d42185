// SPDX-License-Identifier: Apache-2.0
#include "autotune/response_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autotune/chance/expected_maximum.hpp"
#include "autotune/likelihood.hpp"
#include "autotune/replicates.hpp"

namespace horo::autotune {

namespace {

/// Hyper-parameters are chosen from at most so many groups; predictions use all. The cost of one
/// evaluation grows with the cube of their number, and more hardly change the result.
constexpr std::size_t kMostFitted = 40;
/// With so many groups, one start rarely finds another optimum than several do.
constexpr std::size_t kManyGroups = 20;
constexpr int kStarts = 4;
constexpr int kLaterStarts = 1;
/// Further hyper-parameters that predict, while there are few groups.
constexpr int kOthers = 6;
/// So many settings with the best predicted means can be the choice. Others hardly become it.
constexpr std::size_t kMostChoices = 20;
/// A lone measurement so many deviations from what all others predict counts less.
constexpr double kSurprising = 2.5;
/// An outlier among few points raises the estimated noise and hides behind it. Each round lowers
/// its weight, and with it the noise.
constexpr int kRounds = 3;

/// Where nothing varies, a unit so small that no gain seems worth a sample.
double unit_of_scores(const std::vector<MeasuredGroup>& groups, double centre) {
  double squares = 0;
  for (const auto& group : groups) squares += (group.mean - centre) * (group.mean - centre);
  const double deviation = std::sqrt(squares / static_cast<double>(groups.size()));
  const double least = 1e-9 * std::max(std::abs(centre), 1.0);
  return std::max(deviation, least);
}

HyperPrior prior_of(const Replicates& replicates, double unit) {
  HyperPrior prior;
  if (replicates.standard_error > 0) {
    // Stated errors leave out what changes between samples, so they are a hint only.
    prior.noise_mean = 2 * std::log(replicates.standard_error / unit);
    prior.noise_deviation = 1;
  }
  return prior;
}

/// Every row, or an even selection with the best ones.
std::vector<Eigen::Index> fitted_rows(const Eigen::VectorXd& scores) {
  std::vector<Eigen::Index> rows(static_cast<std::size_t>(scores.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<Eigen::Index>(i);
  if (rows.size() <= kMostFitted) return rows;
  std::stable_sort(rows.begin(), rows.end(),
                   [&](Eigen::Index a, Eigen::Index b) { return scores[a] > scores[b]; });
  std::vector<Eigen::Index> chosen(rows.begin(), rows.begin() + kMostFitted / 2);
  const auto rest = rows.size() - kMostFitted / 2;
  for (std::size_t i = 0; i < kMostFitted / 2; ++i)
    chosen.push_back(rows[kMostFitted / 2 + i * rest / (kMostFitted / 2)]);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

MeasuredPoints selection_of(const MeasuredPoints& all) {
  const auto rows = fitted_rows(all.scores);
  const auto count = static_cast<Eigen::Index>(rows.size());
  MeasuredPoints part{.points = Eigen::MatrixXd(count, all.points.cols()),
                      .scores = Eigen::VectorXd(count),
                      .precision = Eigen::VectorXd(count),
                      .is_category = all.is_category,
                      .replicate_squares = all.replicate_squares,
                      .replicate_degrees = all.replicate_degrees};
  for (Eigen::Index i = 0; i < count; ++i) {
    const auto row = rows[static_cast<std::size_t>(i)];
    part.points.row(i) = all.points.row(row);
    part.scores[i] = all.scores[row];
    part.precision[i] = all.precision[row];
  }
  return part;
}

/// The rows with the best predicted means, in their order.
std::vector<Eigen::Index> best_rows(const std::vector<Prediction>& means) {
  std::vector<Eigen::Index> rows(means.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<Eigen::Index>(i);
  if (rows.size() <= kMostChoices) return rows;
  std::stable_sort(rows.begin(), rows.end(), [&](Eigen::Index a, Eigen::Index b) {
    return means[static_cast<std::size_t>(a)].mean > means[static_cast<std::size_t>(b)].mean;
  });
  rows.resize(kMostChoices);
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

MeasuredPoints ResponseModel::standardised(double squares, double degrees) const {
  const auto count = static_cast<Eigen::Index>(groups_.size());
  MeasuredPoints measured{
      .points = Eigen::MatrixXd(count, static_cast<Eigen::Index>(is_category_.size())),
      .scores = Eigen::VectorXd(count),
      .precision = Eigen::VectorXd(count),
      .is_category = is_category_,
      .replicate_squares = squares / (unit_ * unit_),
      .replicate_degrees = degrees};
  for (Eigen::Index i = 0; i < count; ++i) {
    const auto& group = groups_[static_cast<std::size_t>(i)];
    for (std::size_t j = 0; j < is_category_.size(); ++j)
      measured.points(i, static_cast<Eigen::Index>(j)) = group.point[j];
    measured.scores[i] = (group.mean - centre_) / unit_;
    measured.precision[i] = group.precision;
  }
  return measured;
}

void ResponseModel::fit(const Replicates& replicates) {
  const auto prior = prior_of(replicates, unit_);
  auto measured = standardised(replicates.squares, replicates.degrees);
  const int starts = groups_.size() > kManyGroups ? kLaterStarts : kStarts;
  auto parameters = fit_hyper_parameters(selection_of(measured), prior, starts);
  process_ = GaussianProcess(measured, parameters);
  for (int round = 0; round < kRounds && weigh_surprises(measured); ++round) {
    parameters = refit_hyper_parameters(selection_of(measured), prior, parameters);
    process_ = GaussianProcess(measured, parameters);
  }
  add_others(measured, prior);
}

void ResponseModel::add_others(const MeasuredPoints& measured, const HyperPrior& prior) {
  weights_ = {1};
  if (groups_.size() < 2 || groups_.size() > kManyGroups || !process_.usable()) return;
  const auto others = likely_hyper_parameters(measured, prior, process_.parameters(), kOthers);
  double sum = 1;
  for (const auto& one : others) sum += one.weight;
  weights_ = {1 / sum};
  for (const auto& one : others) {
    others_.emplace_back(measured, one.parameters);
    weights_.push_back(one.weight / sum);
  }
}

bool ResponseModel::weigh_surprises(MeasuredPoints& measured) const {
  if (!process_.usable()) return false;
  const auto others = process_.leave_one_out();
  bool surprised = false;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    const double far = std::abs(measured.scores[row] - others[i].mean) / others[i].deviation;
    if (groups_[i].count > 1 || !(far > kSurprising)) continue;
    measured.precision[row] *= kSurprising * kSurprising / (far * far);
    surprised = true;
  }
  return surprised;
}

void ResponseModel::find_best() {
  best_group_ = groups_.size();
  incumbent_ = -std::numeric_limits<double>::infinity();
  std::vector<CubePoint> points;
  for (const auto& group : groups_) points.push_back(group.point);
  const auto predictions = predict(points);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].failed || predictions[i].mean <= incumbent_) continue;
    incumbent_ = predictions[i].mean;
    best_group_ = i;
  }
}

ResponseModel::ResponseModel(const SearchSpace& space, const std::vector<Measurement>& measurements,
                             ScoreScale scale)
    : process_(MeasuredPoints{}, HyperParameters{}) {
  auto replicates = gather_replicates(space, measurements, scale);
  groups_ = replicates.groups;
  for (std::size_t i = 0; i < space.free().size(); ++i)
    is_category_.push_back(space.categories(i) != 0);
  for (const auto& group : groups_) centre_ += group.mean / static_cast<double>(groups_.size());
  if (!groups_.empty()) unit_ = unit_of_scores(groups_, centre_);
  fit(replicates);
  find_best();
}

Eigen::MatrixXd ResponseModel::rows_of(const std::vector<CubePoint>& points) const {
  Eigen::MatrixXd rows(static_cast<Eigen::Index>(points.size()),
                       static_cast<Eigen::Index>(is_category_.size()));
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < is_category_.size(); ++j)
      rows(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = points[i][j];
  }
  return rows;
}

std::vector<double> ResponseModel::values_by(const GaussianProcess& process,
                                             const std::vector<CubePoint>& points) const {
  std::vector<CubePoint> choices;
  for (const auto& group : groups_) {
    if (!group.failed) choices.push_back(group.point);
  }
  std::vector<double> values(points.size());
  if (choices.empty()) return values;
  const auto all = rows_of(choices), rows = rows_of(points);
  const auto all_means = process.predict(all), predictions = process.predict(rows);
  const auto best_of_all = best_rows(all_means);
  const Eigen::MatrixXd known = all(best_of_all, Eigen::all);
  std::vector<double> means;
  for (const auto row : best_of_all) means.push_back(all_means[static_cast<std::size_t>(row)].mean);
  const auto covariance = process.posterior_covariances(known, rows);
  const double noise = std::exp(process.parameters().log_noise);
  const double best = *std::max_element(means.begin(), means.end());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& here = predictions[i];
    const double variance = here.deviation * here.deviation;
    const double seen = std::sqrt(variance + noise);
    // By a score that is z deviations above the expected one, each mean moves along a line.
    std::vector<Line> lines{{.at_zero = here.mean, .slope = variance / seen}};
    for (std::size_t k = 0; k < means.size(); ++k) {
      const double shared = covariance(static_cast<Eigen::Index>(k), static_cast<Eigen::Index>(i));
      lines.push_back({.at_zero = means[k], .slope = shared / seen});
    }
    values[i] = std::max(0.0, expected_maximum(std::move(lines)) - best);
  }
  return values;
}

std::vector<double> ResponseModel::value_of_measuring(const std::vector<CubePoint>& points) const {
  auto values = values_by(process_, points);
  for (auto& one : values) one *= weights_.front();
  for (std::size_t k = 0; k < others_.size(); ++k) {
    const auto more = values_by(others_[k], points);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += weights_[k + 1] * more[i];
  }
  for (auto& one : values) one *= unit_;
  return values;
}

std::vector<Prediction> ResponseModel::predict(const std::vector<CubePoint>& points) const {
  const auto rows = rows_of(points);
  auto predictions = process_.predict(rows);
  std::vector<double> means(predictions.size()), squares(predictions.size());
  const auto add = [&](double weight, const std::vector<Prediction>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      means[i] += weight * all[i].mean;
      squares[i] += weight * (all[i].mean * all[i].mean + all[i].deviation * all[i].deviation);
    }
  };
  add(weights_.front(), predictions);
  for (std::size_t k = 0; k < others_.size(); ++k) add(weights_[k + 1], others_[k].predict(rows));
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (!others_.empty())
      predictions[i].deviation = std::sqrt(std::max(0.0, squares[i] - means[i] * means[i]));
    predictions[i].mean = centre_ + unit_ * (others_.empty() ? predictions[i].mean : means[i]);
    predictions[i].deviation *= unit_;
  }
  return predictions;
}

double ResponseModel::noise() const {
  return unit_ * std::exp(process_.parameters().log_noise / 2);
}

}  // namespace horo::autotune
