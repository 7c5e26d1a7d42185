// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/record/tune_summary.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "apps/tune/record/verdicts.hpp"
#include "autotune/chance/probability.hpp"

namespace horo::apps {

namespace {

/// A model's opinion counts as more than chance from here on: low, because the best setting was
/// chosen among many.
constexpr double kSmallChance = 0.01;

/// Sums over the samples of one setting.
struct SettingSums {
  double sum = 0;
  double squares = 0;
  double error_squares = 0;
};

SettingFigures& figures_of(std::vector<SettingFigures>& all, const TriedSample& sample) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const SettingFigures& one) {
    return one.values == sample.values;
  });
  if (found != all.end()) return *found;
  all.push_back({.values = sample.values, .first_line = sample.line});
  return all.back();
}

/// The standard error of the mean: from the samples' differences where there are any, else as the
/// single samples state it.
double error_of_mean(const SettingSums& sums, double count) {
  const double stated = std::sqrt(sums.error_squares) / count;
  if (count < 2) return stated;
  const double mean = sums.sum / count;
  const double variance = std::max(0.0, sums.squares / count - mean * mean) * count / (count - 1);
  return std::max(stated, std::sqrt(variance / count));
}

/// Groups the samples and follows the best mean.
void gather(const TuneRecord& record, TuneSummary& summary) {
  std::vector<SettingSums> sums;
  for (const auto& sample : record.samples) {
    auto& figures = figures_of(summary.settings, sample);
    sums.resize(summary.settings.size());
    auto& sum = sums[static_cast<std::size_t>(&figures - summary.settings.data())];
    if (sample.failure.empty()) {
      ++figures.samples;
      sum.sum += sample.score;
      sum.squares += sample.score * sample.score;
      sum.error_squares += sample.standard_error * sample.standard_error;
      const auto count = static_cast<double>(figures.samples);
      figures.score = sum.sum / count;
      figures.error = error_of_mean(sum, count);
    } else {
      ++figures.failures;
    }
    double best = 0;
    for (const auto& one : summary.settings) best = std::max(best, one.score);
    summary.best_so_far.push_back(best);
  }
}

bool is_better(const SettingFigures& a, const SettingFigures& b) {
  const double a_score = a.predicted > 0 ? a.predicted : a.score;
  const double b_score = b.predicted > 0 ? b.predicted : b.score;
  return a.samples == 0 || b.samples == 0 ? a.samples > b.samples : a_score > b_score;
}

std::optional<std::size_t> index_of_setting(const TuneSummary& summary,
                                            const std::vector<std::string>& values) {
  for (std::size_t i = 0; i < summary.settings.size(); ++i) {
    if (summary.settings[i].values == values && summary.settings[i].samples > 0) return i;
  }
  return std::nullopt;
}

TunedGain gain_by_model(const SettingFigures& best, const SettingFigures& reference) {
  const double gain = best.predicted / reference.predicted - 1;
  const double error = (1 + gain) * std::hypot(best.deviation / best.predicted,
                                               reference.deviation / reference.predicted);
  const double chance = error > 0 ? autotune::normal_cumulative(-gain / error) : 1;
  return {.gain = gain, .error = error, .chance = chance};
}

/// The gain that the log's last line states.
std::optional<TunedGain> recorded_gain(const TuneRecord& record) {
  if (!record.ending || !record.ending->gain_percent) return std::nullopt;
  return TunedGain{.gain = *record.ending->gain_percent / 100,
                   .error = record.ending->gain_error_percent.value_or(0) / 100,
                   .chance = record.ending->chance_percent.value_or(100) / 100,
                   .in_turns = true};
}

/// The setting that ran in turns with the default.
std::optional<std::size_t> challenger(const TuneRecord& record, const TuneSummary& summary) {
  for (const auto& sample : record.samples) {
    if (sample.stage != kDuelStage) continue;
    const auto index = index_of_setting(summary, sample.values);
    if (index && index != summary.reference) return index;
  }
  return std::nullopt;
}

/// The setting that others must beat. A search measures it first; but a check may have measured the
/// setting that it is about before.
const std::vector<std::string>& reference_of(const TuneRecord& record) {
  const auto& first = record.samples.front();
  if (record.earlier.count > 0) return record.earlier.base;
  if (first.stage != kCheckStage || !record.ending || record.ending->state != kKnownHolds)
    return first.values;
  const auto other = std::find_if(
      record.samples.begin(), record.samples.end(),
      [&](const TriedSample& sample) { return sample.values != record.ending->values; });
  return other == record.samples.end() ? first.values : other->values;
}

/// Which setting is best, and whether it is to be kept.
void choose(const TuneRecord& record, TuneSummary& summary) {
  if (record.samples.empty() || summary.settings.front().samples == 0) return;
  summary.reference = index_of_setting(summary, reference_of(record));
  const bool won = record.ending &&
                   (record.ending->state == kChallengerWon || record.ending->state == kKnownHolds);
  const auto recorded = recorded_gain(record);
  summary.best = won        ? index_of_setting(summary, record.ending->values).value_or(0)
                 : recorded ? challenger(record, summary).value_or(0)
                            : 0;
  if (!summary.reference || summary.reference == summary.best) return;
  const auto& best = summary.settings[*summary.best];
  const auto& reference = summary.settings[*summary.reference];
  summary.gain = recorded;
  if (!summary.gain && best.predicted > 0 && reference.predicted > 0)
    summary.gain = gain_by_model(best, reference);
  // Horovod has no test of its own, so the model's opinion is all there is.
  summary.keep_best = won || (record.kind == TuneSource::horovod_log && summary.gain &&
                              summary.gain->chance < kSmallChance);
}

}  // namespace

std::vector<std::size_t> varied_columns(const TuneRecord& record) {
  std::vector<std::size_t> varied;
  for (std::size_t i = 0; i < record.columns.size(); ++i) {
    const bool differs =
        std::any_of(record.samples.begin(), record.samples.end(), [&](const TriedSample& sample) {
          return sample.values[i] != record.samples.front().values[i];
        });
    if (differs) varied.push_back(i);
  }
  return varied;
}

std::string describe_setting(const TuneRecord& record, const std::vector<std::string>& values) {
  const bool is_log = record.kind == TuneSource::horo_log || record.kind == TuneSource::horovod_log;
  std::string text;
  for (const auto i : varied_columns(record)) {
    const auto& column = record.columns[i];
    text += fmt::format("{}{}{}{}{}{}", text.empty() ? "" : ", ", column.name, is_log ? " " : "=",
                        values[i], column.unit.empty() ? "" : " ", column.unit);
  }
  return text;
}

TuneSummary summarise(const TuneRecord& record) {
  TuneSummary summary;
  gather(record, summary);
  const auto model = SampleModel::fit(record);
  if (model) {
    summary.noise = model->noise();
    for (auto& figures : summary.settings) {
      const auto prediction = model->predict(figures.values);
      figures.predicted = prediction.score;
      figures.deviation = prediction.deviation;
    }
  }
  std::stable_sort(summary.settings.begin(), summary.settings.end(), is_better);
  choose(record, summary);
  if (model && summary.best)
    summary.surface = model->surface(summary.settings[*summary.best].values);
  summary.verdicts = verdicts_of(record, summary);
  return summary;
}

}  // namespace horo::apps
