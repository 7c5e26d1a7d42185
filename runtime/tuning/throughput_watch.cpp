// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/throughput_watch.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autotune/replicates.hpp"

namespace horo::runtime::tuning {

namespace {

constexpr std::size_t kLearnt = 5;
constexpr std::size_t kLeastSamples = 5;
/// A fall must exceed so many deviations of the first samples.
constexpr double kDeviations = 4;
/// Steps whose data differ by less than this share are of one kind.
constexpr double kSameStep = 0.02;
/// No phase must last longer than this to count, unless the user has asked for more.
constexpr double kLongest = 3600;

double median(std::vector<double> numbers) {
  return numbers.empty() ? 0 : autotune::median_of(std::move(numbers));
}

}  // namespace

double ThroughputWatch::longer(double present, double seconds) {
  return std::clamp(seconds, present, std::max(kLongest, present));
}

void ThroughputWatch::be_patient() {
  needed_fall_ = longer(needed_fall_, 2 * needed_fall_);
  needed_change_ = longer(needed_change_, 2 * needed_change_);
}

void ThroughputWatch::begin() {
  first_.clear();
  usual_ = 0;
  low_ = {};
  high_ = {};
  different_ = {};
}

double ThroughputWatch::now() const {
  return median(low_.scores.empty() ? different_.scores : low_.scores);
}

void ThroughputWatch::learn(const WatchSample& sample) {
  first_.push_back(sample);
  if (first_.size() < kLearnt) return;
  std::vector<double> scores, bytes;
  for (const auto& one : first_) {
    scores.push_back(one.score);
    bytes.push_back(one.bytes_per_step);
  }
  usual_ = median(scores);
  bytes_per_step_ = median(bytes);
  for (auto& score : scores) score = std::abs(score - usual_);
  // 1.4826 makes the median distance of normal numbers their deviation.
  band_ = std::max(rules_.least_fall, kDeviations * 1.4826 * median(scores) / usual_);
}

bool ThroughputWatch::follow(Phase& phase, bool belongs, const WatchSample& sample) {
  if (belongs) {
    if (phase.scores.empty()) phase.since = sample.seconds;
    phase.scores.push_back(sample.score);
    phase.until = sample.seconds;
    phase.others = 0;
    return false;
  }
  if (phase.scores.empty()) return false;
  return ++phase.others == 2;
}

bool ThroughputWatch::is_long(const Phase& phase, double needed) {
  return phase.scores.size() >= kLeastSamples && phase.until - phase.since >= needed;
}

WatchFinding ThroughputWatch::add(const WatchSample& sample) {
  if (usual_ == 0) {
    learn(sample);
    return WatchFinding::learns;
  }
  const bool same =
      std::abs(sample.bytes_per_step - bytes_per_step_) <= kSameStep * bytes_per_step_;
  if (follow(different_, !same, sample)) {
    needed_change_ = longer(needed_change_, 3 * (different_.until - different_.since));
    different_ = {};
  }
  if (!same) {
    // The steps before and after those of another kind are no phase without end.
    low_ = {};
    high_ = {};
    return is_long(different_, needed_change_) ? WatchFinding::changed : WatchFinding::steady;
  }
  if (follow(low_, sample.score < usual_ * (1 - band_), sample)) {
    needed_fall_ = longer(needed_fall_, 3 * (low_.until - low_.since));
    low_ = {};
  }
  if (follow(high_, sample.score > usual_ * (1 + band_), sample)) high_ = {};
  if (high_.others == 0 && is_long(high_, needed_fall_)) {
    usual_ = median(high_.scores);
    high_ = {};
  }
  return low_.others == 0 && is_long(low_, needed_fall_) ? WatchFinding::fallen
                                                         : WatchFinding::steady;
}

}  // namespace horo::runtime::tuning
