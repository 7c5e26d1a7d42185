// SPDX-License-Identifier: Apache-2.0
#include "autotune_surfaces.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numbers>

#include <fmt/format.h>

#include "autotune/replicates.hpp"
#include "runtime/tuning/tuning_space.hpp"

namespace horo::bench {

using namespace horo::autotune;

namespace {

constexpr double kMiB = 1048576;

SearchSpace checked(std::vector<Dimension> dimensions) {
  auto space = SearchSpace::make(std::move(dimensions));
  if (!space) {
    fmt::print(stderr, "bench_autotune: {}\n", space.error().message);
    std::exit(1);
  }
  return std::move(space).value();
}

SearchSpace unit_cube(std::size_t dimensions) {
  std::vector<Dimension> all;
  for (std::size_t i = 0; i < dimensions; ++i) {
    all.push_back({.name = fmt::format("x{}", i),
                   .range = RealRange{.least = 0, .most = 1},
                   .fallback = 0.5});
  }
  return checked(std::move(all));
}

double at(const Setting& setting, std::size_t i) {
  if (const auto* whole = std::get_if<std::int64_t>(&setting[i]))
    return static_cast<double>(*whole);
  return std::get<double>(setting[i]);
}

/// The true score with normal noise: of this deviation, or of this share of the score.
void add_noise(Surface& surface, double deviation, double share) {
  surface.measure = [truth = surface.truth, deviation, share](const Setting& setting,
                                                              RandomDraws& draws) {
    const double score = truth(setting);
    return noisy_reading(score, deviation + share * score, draws);
  };
}

Surface branin() {
  Surface surface{.name = "Branin, noise 2", .space = unit_cube(2), .raw = {{}, {}}};
  surface.truth = [](const Setting& setting) {
    const double x = 15 * at(setting, 0) - 5;
    const double y = 15 * at(setting, 1);
    const double pi = std::numbers::pi;
    const double square = y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
    return -(square * square + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10);
  };
  surface.best = -0.397887;
  add_noise(surface, 2, 0);
  return surface;
}

Surface hartmann() {
  Surface surface{
      .name = "Hartmann-6, noise 0.05", .space = unit_cube(6), .raw = std::vector<RawRange>(6)};
  surface.truth = [](const Setting& setting) {
    constexpr double kHeights[4] = {1, 1.2, 3, 3.2};
    constexpr double kSlopes[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                      {0.05, 10, 17, 0.1, 8, 14},
                                      {3, 3.5, 1.7, 10, 17, 8},
                                      {17, 8, 0.05, 10, 0.1, 14}};
    constexpr double kCentres[4][6] = {{.1312, .1696, .5569, .0124, .8283, .5886},
                                       {.2329, .4135, .8307, .3736, .1004, .9991},
                                       {.2348, .1451, .3522, .2883, .3047, .6650},
                                       {.4047, .8828, .8732, .5743, .1091, .0381}};
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
      double exponent = 0;
      for (std::size_t j = 0; j < 6; ++j) {
        const double difference = at(setting, j) - kCentres[i][j];
        exponent += kSlopes[i][j] * difference * difference;
      }
      sum += kHeights[i] * std::exp(-exponent);
    }
    return sum;
  };
  surface.best = 3.32237;
  add_noise(surface, 0.05, 0);
  return surface;
}

/// The values that a surface is about.
enum class Values : std::uint8_t { threshold_and_cycle, small_message_too };

/// The space that jobs search, in bytes and microseconds.
std::vector<Dimension> dimensions_of_jobs(Values values) {
  constexpr std::int64_t kThresholdUnit = 65536, kCycleUnit = 1, kSmallUnit = 16384;
  const auto space = runtime::tuning::TuningSpace::make(
      {}, {.wake_delay = false, .small_message = values == Values::small_message_too});
  if (!space) {
    fmt::print(stderr, "bench_autotune: {}\n", space.error().message);
    std::exit(1);
  }
  auto dimensions = space->space().dimensions();
  for (auto& one : dimensions) {
    const auto unit = one.name == "fusion.threshold" ? kThresholdUnit
                      : one.name == "small.message"  ? kSmallUnit
                                                     : kCycleUnit;
    auto& range = std::get<IntegerRange>(one.range);
    range.least *= unit;
    range.most *= unit;
    range.step *= unit;
    one.fallback = std::get<std::int64_t>(one.fallback) * unit;
  }
  return dimensions;
}

/// The same with the cycle times of Horovod's tuner and of recordings.
SearchSpace wide_space(Values values) {
  auto dimensions = dimensions_of_jobs(values);
  for (auto& one : dimensions) {
    if (one.name == "cycle.time")
      one.range = IntegerRange{.least = 0, .most = 100'000, .step = 100};
  }
  return checked(std::move(dimensions));
}

std::vector<RawRange> horovods_ranges() {
  return {{.least = 0, .most = 64, .unit = kMiB}, {.least = 1, .most = 100, .unit = 1000}};
}

}  // namespace

Reading noisy_reading(double truth, double deviation, RandomDraws& draws) {
  const double score = truth + deviation * draws.normal();
  double squares = 0;
  for (int i = 1; i < kStepsOfSample; ++i) {
    const double one = draws.normal();
    squares += one * one;
  }
  return {.score = score, .standard_error = deviation * std::sqrt(squares / (kStepsOfSample - 1))};
}

namespace {

Surface surface_of(Values values) {
  return {.space = checked(dimensions_of_jobs(values)),
          .scale = ScoreScale::relative,
          .raw = horovods_ranges(),
          .wide = wide_space(values)};
}

}  // namespace

Surface surface_of_fusion() {
  return surface_of(Values::threshold_and_cycle);
}

namespace {

/// 64 tensors of 0.1 to 8 MiB appear during 60 ms. A bucket closes when it is full or its first
/// tensor has waited for a cycle, costs 1.5 ms and 1 ms per MiB, and buckets run one by one: the
/// threshold acts in steps, because tensors are not cut.
double step_seconds(double threshold, double cycle_ms) {
  double free_at = 0;
  double bucket = 0;
  double opened = 0;
  const auto close = [&](double now) {
    free_at = std::max(free_at, now) + 1.5 + bucket / kMiB;
    bucket = 0;
  };
  for (int i = 0; i < 64; ++i) {
    const double now = 60.0 * i / 63;
    const double bytes = kMiB * (i % 8 == 0 ? 8 : 0.1 + 0.05 * (i % 5));
    if (bucket > 0 && now - opened >= cycle_ms) close(opened + cycle_ms);
    if (bucket > 0 && bucket + bytes > threshold) close(now);
    if (bucket == 0) opened = now;
    bucket += bytes;
  }
  close(std::min(60.0, opened + cycle_ms));
  return (20 + std::max(60.0, free_at)) / 1e3;
}

Surface steps() {
  auto surface = surface_of_fusion();
  surface.name = "steps of fusion, noise 3 %";
  surface.truth = [](const Setting& setting) {
    return 1 / step_seconds(at(setting, 0), at(setting, 1) / 1000);
  };
  for (int i = 0; i <= 400; ++i) {
    for (int j = 0; j <= 400; ++j) {
      const auto setting = surface.space.decode({i / 400.0, j / 400.0});
      surface.best = std::max(surface.best, surface.truth(setting));
    }
  }
  surface.unit = surface.best;
  add_noise(surface, 0, 0.03);
  return surface;
}

Surface flat() {
  auto surface = surface_of_fusion();
  surface.name = "flat, noise 3 %";
  surface.best = 1;
  surface.truth = [](const Setting&) { return 1.0; };
  add_noise(surface, 0, 0.03);
  return surface;
}

struct Cell {
  CubePoint point;
  std::vector<double> scores;

  /// The standard deviation of the repeats; 0 if there is one.
  double deviation() const {
    double mean = 0, squares = 0;
    const auto count = static_cast<double>(scores.size());
    for (const double one : scores) mean += one / count;
    for (const double one : scores) squares += (one - mean) * (one - mean);
    return count > 1 ? std::sqrt(squares / (count - 1)) : 0;
  }
};

/// The numbers of a recording: the values of a cell, and the score last.
std::vector<std::vector<double>> read_rows(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::vector<double>> rows;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#' || line[0] == 'f') continue;
    std::vector<double> row(4);
    const int found =
        std::sscanf(line.c_str(), "%lf,%lf,%lf,%lf", row.data(), &row[1], &row[2], &row[3]);
    row.resize(static_cast<std::size_t>(std::max(0, found)));
    if (found < 3 || (!rows.empty() && row.size() != rows.front().size())) {
      fmt::print(stderr, "bench_autotune: {}:{} has not three or four numbers, as all lines\n",
                 path, number);
      std::exit(1);
    }
    rows.push_back(std::move(row));
  }
  if (!rows.empty()) return rows;
  fmt::print(stderr, "bench_autotune: {} has no cells\n", path);
  std::exit(1);
}

std::vector<Cell> cells_of(const std::string& path, const std::vector<std::vector<double>>& rows,
                           const SearchSpace& space) {
  std::map<std::vector<double>, std::vector<double>> cells;
  for (auto place : rows) {
    const double score = place.back();
    place.pop_back();
    cells[std::move(place)].push_back(score);
  }
  std::vector<Cell> result;
  for (const auto& [place, scores] : cells) {
    Setting setting;
    for (const double value : place) setting.emplace_back(static_cast<std::int64_t>(value));
    if (const auto fits = space.check(setting); !fits) {
      fmt::print(stderr, "bench_autotune: {}: {}\n", path, fits.error().message);
      std::exit(1);
    }
    result.push_back({space.encode(setting), scores});
  }
  return result;
}

const Cell& nearest(const std::vector<Cell>& cells, const CubePoint& point) {
  const auto distance = [&](const Cell& cell) {
    double squares = 0;
    for (std::size_t i = 0; i < point.size(); ++i)
      squares += (cell.point[i] - point[i]) * (cell.point[i] - point[i]);
    return squares;
  };
  return *std::min_element(cells.begin(), cells.end(),
                           [&](const Cell& a, const Cell& b) { return distance(a) < distance(b); });
}

}  // namespace

std::vector<Surface> known_surfaces() {
  return {branin(), hartmann(), steps(), flat()};
}

Surface recorded_surface(const std::string& path) {
  const auto rows = read_rows(path);
  auto surface = surface_of(rows.front().size() == 4 ? Values::small_message_too
                                                     : Values::threshold_and_cycle);
  surface.name = std::filesystem::path(path).stem();
  const auto cells = cells_of(path, rows, *surface.wide);
  for (const auto& cell : cells) surface.best = std::max(surface.best, median_of(cell.scores));
  surface.unit = surface.best;
  surface.truth = [cells, space = *surface.wide](const Setting& setting) {
    return median_of(nearest(cells, space.encode(setting)).scores);
  };
  surface.measure = [cells, space = *surface.wide](const Setting& setting, RandomDraws& draws) {
    const auto& cell = nearest(cells, space.encode(setting));
    return Reading{.score = cell.scores[draws.below(cell.scores.size())],
                   .standard_error = cell.deviation()};
  };
  return surface;
}

}  // namespace horo::bench
