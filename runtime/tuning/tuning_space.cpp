// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/tuning_space.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace horo::runtime::tuning {

namespace {

/// One value of a tuning as a dimension of the search.
struct Row {
  std::string_view knob;
  std::uint64_t Tuning::*value;
  bool TunableValues::*tunable;
  std::uint64_t unit;            ///< One of the dimension's numbers, in units of the tuning.
  autotune::IntegerRange range;  ///< In `unit`.
};

// The ranges contain what helped anywhere: thresholds up to four times the default, cycle times
// that a step can bear, wake delays from "at once" to "late" (kLateWakeNs), and small messages up
// to what a link of 10 Gbit/s carries in a round trip of 13 ms. Finer steps of the cycle time would
// give half of the searched line to less than 0.7 ms.
constexpr std::array<Row, 4> kRows{{
    {.knob = "fusion.threshold",
     .value = &Tuning::fusion_threshold,
     .tunable = &TunableValues::fusion_threshold,
     .unit = 65536,
     .range = {.least = 0, .most = 4096, .step = 1}},
    {.knob = "cycle.time",
     .value = &Tuning::cycle_ns,
     .tunable = &TunableValues::cycle_time,
     .unit = 1000,
     .range = {.least = 0, .most = 10'000, .step = 250}},
    {.knob = "wake.delay",
     .value = &Tuning::wake_delay_ns,
     .tunable = &TunableValues::wake_delay,
     .unit = 1000,
     .range = {.least = 10, .most = kLateWakeNs / 1000, .step = 10}},
    {.knob = "small.message",
     .value = &Tuning::small_message,
     .tunable = &TunableValues::small_message,
     .unit = 16384,
     .range = {.least = 1, .most = 1024, .step = 1}},
}};

const Row& row_of(std::string_view knob) {
  for (const auto& row : kRows) {
    if (row.knob == knob) return row;
  }
  return kRows.front();
}

}  // namespace

Result<TuningSpace> TuningSpace::make(const Tuning& start, const TunableValues& tunable) {
  std::vector<autotune::Dimension> dimensions;
  for (const auto& row : kRows) {
    autotune::Dimension dimension{
        .name = std::string(row.knob),
        .range = row.range,
        .fallback = static_cast<std::int64_t>(start.*row.value / row.unit),
        .fixed = std::nullopt,
        .when = std::nullopt};
    const auto number = std::get<std::int64_t>(dimension.fallback);
    const bool searched = number >= row.range.least && number <= row.range.most &&
                          (number - row.range.least) % row.range.step == 0 &&
                          start.*row.value % row.unit == 0;
    if (tunable.*row.tunable && searched) dimensions.push_back(std::move(dimension));
  }
  HORO_TRY(auto space, autotune::SearchSpace::make(std::move(dimensions)));
  return TuningSpace(start, std::move(space));
}

Tuning TuningSpace::tuning_of(const autotune::Setting& setting) const {
  auto tuning = start_;
  for (std::size_t i = 0; i < setting.size(); ++i) {
    const auto& row = row_of(space_.dimensions()[i].name);
    tuning.*row.value = static_cast<std::uint64_t>(std::get<std::int64_t>(setting[i])) * row.unit;
  }
  return tuning;
}

std::optional<autotune::Setting> TuningSpace::setting_of(const Tuning& tuning) const {
  autotune::Setting setting;
  for (const auto& dimension : space_.dimensions()) {
    const auto& row = row_of(dimension.name);
    setting.emplace_back(static_cast<std::int64_t>(tuning.*row.value / row.unit));
  }
  if (!space_.check(setting) || tuning_of(setting) != tuning) return std::nullopt;
  return setting;
}

std::string describe(const Tuning& tuning) {
  auto text = fmt::format("fusion.threshold={:.6g}MiB cycle.time={:.6g}ms wake.delay={}us",
                          static_cast<double>(tuning.fusion_threshold) / (1 << 20),
                          static_cast<double>(tuning.cycle_ns) * 1e-6, tuning.wake_delay_ns / 1000);
  if (tuning.small_message != kUsualSmallMessage) {
    text +=
        fmt::format(" small.message={:.6g}KiB", static_cast<double>(tuning.small_message) / 1024);
  }
  return text;
}

}  // namespace horo::runtime::tuning
