// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/simulate/simulate_trials.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include "apps/tune/trials/tune_runs.hpp"
#include "runtime/simulator/cluster/predict.hpp"

namespace horo::apps {

namespace {

using runtime::sim::StepPredictor;
using runtime::sim::TunedValues;

/// The values of a setting of knob_dimensions().
TunedValues tuned_values(const TrialSpace& space, const autotune::Setting& setting) {
  constexpr std::uint64_t kThresholdUnit = 65536;
  constexpr std::uint64_t kSmallUnit = 16384;
  TunedValues values;
  const auto& dimensions = space.space().dimensions();
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const auto number = std::get<std::int64_t>(setting[i]);
    if (dimensions[i].name == "fusion.threshold")
      values.fusion_threshold = static_cast<std::uint64_t>(number) * kThresholdUnit;
    if (dimensions[i].name == "cycle.time") values.cycle = std::chrono::microseconds(number);
    if (dimensions[i].name == "small.message")
      values.small_message = static_cast<std::uint64_t>(number) * kSmallUnit;
  }
  return values;
}

/// Predicts each setting once, because a prediction has no noise.
class PredictedScores {
 public:
  PredictedScores(const runtime::sim::Cluster& cluster, const TrialSpace& space)
      : predictor_(cluster), space_(space), bytes_(cluster.training.bytes()) {}

  /// Seconds of a step.
  double step(const autotune::Setting& setting) {
    const auto name = space_.describe(setting);
    if (const auto known = steps_.find(name); known != steps_.end()) return known->second;
    const std::chrono::duration<double> step =
        predictor_.predict(tuned_values(space_, setting)).step;
    return steps_[name] = step.count();
  }

  /// MB/s, as in logs.
  double score(const autotune::Setting& setting) {
    constexpr double kMega = 1e6;
    return static_cast<double>(bytes_) / kMega / std::max(step(setting), 1e-9);
  }

 private:
  StepPredictor predictor_;
  const TrialSpace& space_;
  const std::uint64_t bytes_;
  std::map<std::string, double> steps_;
};

}  // namespace

Result<SimulatedSearch> simulate_trials(const runtime::sim::Cluster& cluster,
                                        const std::string& source) {
  if (cluster.hosts() < 2 || cluster.training.tensors.empty()) {
    return fail(Errc::invalid_argument,
                "'{}' must describe two hosts or more, and a 'training' with its tensors", source);
  }
  HORO_TRY(auto dimensions, knob_dimensions(Settings(), JobShape::several_hosts));
  HORO_TRY(const auto space, TrialSpace::make(std::move(dimensions)));
  HORO_TRY(auto driver, TrialDriver::make(space.space(), {}, {}));
  PredictedScores predicted(cluster, space);
  while (driver.next().stop == TrialStop::none)
    driver.finished({.score = predicted.score(driver.next().setting)});
  SimulatedSearch found{.record = record_of_trials(driver, space, Objective::throughput),
                        .keep = std::nullopt};
  found.record.source = source;
  found.record.kind = TuneSource::simulation;
  const auto outcome = driver.outcome();
  if (outcome.ending == autotune::SearchEnding::challenger_won)
    found.keep = space.words_of(outcome.setting);
  constexpr double kMilli = 1e3;
  found.record.notes.push_back(fmt::format(
      "predicted for {} ranks on {} hosts: a step takes {:.4g} ms with the default, and {:.4g} ms "
      "with the setting to use",
      cluster.ranks(), cluster.hosts(), kMilli * predicted.step(space.space().fallback()),
      kMilli * predicted.step(outcome.setting)));
  return found;
}

}  // namespace horo::apps
