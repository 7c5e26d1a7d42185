// SPDX-License-Identifier: Apache-2.0
#include "autotune/replicates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace horo::autotune {

namespace {

/// A score so many times farther below the best than the median is says only that it is bad. More
/// of it would leave the model no resolution near the best.
constexpr double kLowestInMedians = 4;
/// So many measurements are needed before a median says something.
constexpr std::size_t kEnough = 5;
/// Beyond so many deviations from its group's median, a replicate counts less.
constexpr double kOutlying = 3.5;
/// A stated standard error raises a measurement's weight by at most the first factor, because it
/// leaves out what changes between samples, and lowers it down to the second.
constexpr double kMostShare = 4, kLeastShare = 1.0 / 64;
/// The score of a failed setting is made up, so it gives way to measured ones near it.
constexpr double kFailedWeight = 1.0 / 16;

/// One measurement on the model's scale; NaN values have failed.
struct Scaled {
  double value = 0;
  double error = 0;
  double weight = 1;
};

Scaled scaled_of(const Measurement& measurement, ScoreScale scale) {
  Scaled one{.value = on_scale(scale, measurement.score)};
  const double error = measurement.standard_error;
  if (!std::isfinite(error) || error <= 0 || std::isnan(one.value)) return one;
  one.error = scale == ScoreScale::relative ? error / measurement.score : error;
  return one;
}

/// Raises values that are far below all others.
void raise_lowest(std::vector<Scaled>& all) {
  std::vector<double> values;
  for (const auto& one : all) {
    if (!std::isnan(one.value)) values.push_back(one.value);
  }
  if (values.size() < kEnough) return;
  const double best = *std::max_element(values.begin(), values.end());
  const double lowest = best - kLowestInMedians * (best - median_of(values));
  for (auto& one : all) one.value = std::isnan(one.value) ? one.value : std::max(one.value, lowest);
}

double median_error(const std::vector<Scaled>& all) {
  std::vector<double> errors;
  for (const auto& one : all) {
    if (one.error > 0) errors.push_back(one.error);
  }
  return errors.empty() ? 0 : median_of(errors);
}

void weigh_by_error(std::vector<Scaled>& all, double median) {
  for (auto& one : all) {
    if (one.error <= 0) continue;
    const double ratio = median / one.error;
    one.weight = std::clamp(ratio * ratio, kLeastShare, kMostShare);
  }
}

/// Lowers the weight of what is far from the median of three or more replicates.
void weigh_outliers(std::vector<Scaled>& members, double standard_error) {
  if (members.size() < 3) return;
  std::vector<double> values;
  for (const auto& one : members) values.push_back(one.value);
  const double median = median_of(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - median));
  // 1.4826 makes the median distance of normal numbers their deviation.
  const double deviation = std::max(1.4826 * median_of(distances), standard_error);
  if (deviation <= 0) return;
  for (auto& one : members) {
    const double far = std::abs(one.value - median) / deviation;
    if (far > kOutlying) one.weight *= kOutlying * kOutlying / (far * far);
  }
}

void summarise(std::vector<Scaled> members, MeasuredGroup& group, Replicates& result) {
  std::erase_if(members, [](const Scaled& one) { return std::isnan(one.value); });
  group.count = members.size();
  group.failed = members.empty();
  group.precision = kFailedWeight;
  if (members.empty()) return;
  weigh_outliers(members, result.standard_error);
  double sum = 0;
  group.precision = 0;
  for (const auto& one : members) {
    group.precision += one.weight;
    sum += one.weight * one.value;
  }
  group.mean = sum / group.precision;
  for (const auto& one : members)
    result.squares += one.weight * (one.value - group.mean) * (one.value - group.mean);
  result.degrees += static_cast<double>(members.size() - 1);
}

void fill_failed(std::vector<MeasuredGroup>& groups) {
  double worst = std::numeric_limits<double>::infinity();
  for (const auto& group : groups) {
    if (!group.failed) worst = std::min(worst, group.mean);
  }
  for (auto& group : groups) {
    if (group.failed) group.mean = std::isfinite(worst) ? worst : 0;
  }
}

}  // namespace

double median_of(std::vector<double> numbers) {
  if (numbers.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(numbers.begin(), numbers.end());
  const auto middle = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
}

double on_scale(ScoreScale scale, double score) {
  const bool possible = std::isfinite(score) && (scale == ScoreScale::linear || score > 0);
  if (!possible) return std::numeric_limits<double>::quiet_NaN();
  return scale == ScoreScale::relative ? std::log(score) : score;
}

Replicates gather_replicates(const SearchSpace& space, const std::vector<Measurement>& measurements,
                             ScoreScale scale) {
  std::vector<Scaled> all;
  for (const auto& measurement : measurements) all.push_back(scaled_of(measurement, scale));
  raise_lowest(all);
  Replicates result{.standard_error = median_error(all)};
  weigh_by_error(all, result.standard_error);
  std::vector<std::vector<Scaled>> members;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& setting = measurements[i].setting;
    const auto found =
        std::find_if(result.groups.begin(), result.groups.end(),
                     [&](const MeasuredGroup& group) { return group.setting == setting; });
    const auto index = static_cast<std::size_t>(found - result.groups.begin());
    if (found == result.groups.end()) {
      result.groups.push_back({.setting = setting, .point = space.encode(setting)});
      members.emplace_back();
    }
    members[index].push_back(all[i]);
  }
  for (std::size_t g = 0; g < members.size(); ++g)
    summarise(std::move(members[g]), result.groups[g], result);
  fill_failed(result.groups);
  return result;
}

}  // namespace horo::autotune
