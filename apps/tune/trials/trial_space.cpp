// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/trial_space.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/knobs/knobs.hpp"
#include "base/knobs/value.hpp"
#include "runtime/tuning/tuning_space.hpp"

namespace horo::apps {

namespace {

using autotune::IntegerRange;

/// A knob of Horo, in the unit of the runtime's dimension.
struct TunedKnob {
  std::string_view key;
  std::int64_t unit;  ///< One of the dimension's numbers, in bytes or nanoseconds.
  double shown_factor;
  std::string_view shown_unit;
};

constexpr TunedKnob kTunedKnobs[] = {
    {"fusion.threshold", 65536, 1.0 / 16, "MiB"},
    {"cycle.time", 1000, 1e-3, "ms"},
    {"small.message", 16384, 16, "KiB"},
};

const TunedKnob* tuned_knob(std::string_view key) {
  const auto* found = std::find_if(std::begin(kTunedKnobs), std::end(kTunedKnobs),
                                   [key](const TunedKnob& knob) { return knob.key == key; });
  return found == std::end(kTunedKnobs) ? nullptr : found;
}

std::string knob_text(std::string_view key, const autotune::Value& value) {
  // Values from a file of --space are words.
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  const auto number = std::get<std::int64_t>(value);
  const auto& row = knob_rows()[static_cast<std::size_t>(knob_index(key))];
  return format_knob(row, number * tuned_knob(key)->unit);
}

double offset_of(const autotune::Dimension& dimension, double factor) {
  if (const auto* whole = std::get_if<IntegerRange>(&dimension.range))
    return whole->scale == autotune::Scale::logarithmic ? factor * static_cast<double>(whole->step)
                                                        : 0;
  const auto* real = std::get_if<autotune::RealRange>(&dimension.range);
  constexpr double kAlmostNothing = 1e-6;
  return real != nullptr && real->scale == autotune::Scale::logarithmic
             ? kAlmostNothing * real->least
             : 0;
}

std::string shown_value(const TrialDimension& one, const autotune::Value& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  if (whole == nullptr || one.shown_factor == 1) return autotune::to_text(value);
  return fmt::format("{:.8g}", one.shown_factor * static_cast<double>(*whole));
}

}  // namespace

std::vector<std::string> SettingWords::variable_words() const {
  std::vector<std::string> words;
  for (const auto& [name, value] : variables) words.push_back(fmt::format("{}={}", name, value));
  return words;
}

std::vector<std::string> SettingWords::flag_words() const {
  std::vector<std::string> words;
  for (const auto& [key, value] : knobs)
    words.push_back(fmt::format("--{}={}", flag_name(key), value));
  if (!mpi_args.empty()) words.push_back(fmt::format("--mpi-args={}", mpi_args));
  return words;
}

Result<TrialSpace> TrialSpace::make(std::vector<TrialDimension> dimensions) {
  std::vector<autotune::Dimension> plain;
  for (const auto& one : dimensions) plain.push_back(one.dimension);
  HORO_TRY(auto space, autotune::SearchSpace::make(std::move(plain)));
  return TrialSpace(std::move(dimensions), std::move(space));
}

SettingWords TrialSpace::words_of(const autotune::Setting& setting) const {
  SettingWords words;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const auto& name = dimensions_[i].dimension.name;
    const auto text = autotune::to_text(setting[i]);
    switch (dimensions_[i].target) {
      case ValueTarget::knob:
        words.knobs.emplace_back(name, knob_text(name, setting[i]));
        break;
      case ValueTarget::variable:
        if (text == kUnsetWord) {
          words.unset.push_back(name);
        } else {
          words.variables.emplace_back(name, text);
        }
        break;
      case ValueTarget::mpi_args:
        if (!text.empty()) words.mpi_args += (words.mpi_args.empty() ? "" : " ") + text;
        break;
    }
  }
  return words;
}

std::vector<TunedColumn> TrialSpace::columns() const {
  std::vector<TunedColumn> columns;
  for (const auto& one : dimensions_) {
    columns.push_back(
        {.name = one.dimension.name,
         .unit = one.unit,
         .is_number = !std::holds_alternative<autotune::Categories>(one.dimension.range),
         .offset = offset_of(one.dimension, one.shown_factor)});
  }
  return columns;
}

std::vector<std::string> TrialSpace::shown(const autotune::Setting& setting) const {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < dimensions_.size(); ++i)
    values.push_back(shown_value(dimensions_[i], setting[i]));
  return values;
}

std::string TrialSpace::describe(const autotune::Setting& setting) const {
  std::string text;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const auto& one = dimensions_[i];
    const auto value = one.target == ValueTarget::knob ? knob_text(one.dimension.name, setting[i])
                                                       : autotune::to_text(setting[i]);
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", one.dimension.name,
                        value.empty() ? "''" : value);
  }
  return text;
}

Result<std::vector<TrialDimension>> knob_dimensions(const Settings& settings, JobShape shape) {
  const auto ns = [](Duration time) { return static_cast<std::uint64_t>(time.count()); };
  const auto is_free = [&settings](const auto& knob) { return !settings.is_set(knob.text.key); };
  const runtime::Tuning start{.fusion_threshold = settings.get(knobs::kFusionThreshold).value(),
                              .cycle_ns = ns(settings.get(knobs::kCycleTime)),
                              .wake_delay_ns = ns(settings.get(knobs::kWakeDelay)),
                              .small_message = settings.get(knobs::kSmallMessage).value()};
  HORO_TRY(const auto space, runtime::tuning::TuningSpace::make(
                                 start, {.fusion_threshold = is_free(knobs::kFusionThreshold),
                                         .cycle_time = is_free(knobs::kCycleTime),
                                         .wake_delay = false,
                                         .small_message = shape == JobShape::several_hosts &&
                                                          is_free(knobs::kSmallMessage)}));
  std::vector<TrialDimension> dimensions;
  for (const auto& dimension : space.space().dimensions()) {
    const auto* knob = tuned_knob(dimension.name);
    if (knob == nullptr) continue;
    dimensions.push_back({.dimension = dimension,
                          .target = ValueTarget::knob,
                          .shown_factor = knob->shown_factor,
                          .unit = std::string(knob->shown_unit)});
  }
  return dimensions;
}

}  // namespace horo::apps
