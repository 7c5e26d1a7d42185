// SPDX-License-Identifier: Apache-2.0
#include "autotune_families.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace horo::bench {

using namespace horo::autotune;

namespace {

using Draws = RandomDraws;

double between(Draws& draws, double least, double most) {
  return least + draws.uniform() * (most - least);
}

/// Sets the best of a grid, and noise as a share of the score.
void finish(Surface& surface, double noise) {
  surface.best = 0;
  for (int i = 0; i <= 100; ++i) {
    for (int j = 0; j <= 100; ++j) {
      const auto setting = surface.space.decode({i / 100.0, j / 100.0});
      surface.best = std::max(surface.best, surface.truth(setting));
    }
  }
  surface.unit = surface.best;
  surface.measure = [truth = surface.truth, noise](const Setting& setting, Draws& draws) {
    const double score = truth(setting);
    auto reading = noisy_reading(score, noise * score, draws);
    reading.score = std::max(0.05 * score, reading.score);
    return reading;
  };
}

Surface of_cube(double (*shape)(const CubePoint&, const std::vector<double>&),
                const std::vector<double>& numbers, double noise) {
  auto surface = surface_of_fusion();
  surface.truth = [space = surface.space, shape, numbers](const Setting& setting) {
    return shape(space.encode(setting), numbers);
  };
  finish(surface, noise);
  return surface;
}

/// A hill, wider in one direction than in the other; far from it the score falls to a tenth.
double hill(const CubePoint& point, const std::vector<double>& n) {
  const double x = (point[0] - n[0]) / n[2], y = (point[1] - n[1]) / n[3];
  return 1 / (0.7 + n[4] * (1 - std::exp(-(x * x + y * y) / 2)));
}

Surface smooth(Draws& draws, double noise) {
  return of_cube(hill,
                 {between(draws, 0.15, 0.85), between(draws, 0.05, 0.95), between(draws, 0.15, 0.5),
                  between(draws, 0.15, 0.5), between(draws, 0.5, 5)},
                 noise);
}

/// A ridge: both coordinates can replace each other, and along the ridge the score falls slowly.
double ridge_at(const CubePoint& point, const std::vector<double>& n) {
  const double across = (point[0] * std::cos(n[0]) + point[1] * std::sin(n[0]) - n[1]) / n[2];
  const double along = -point[0] * std::sin(n[0]) + point[1] * std::cos(n[0]) - n[3];
  return 1 / (0.8 + n[4] * (1 - std::exp(-across * across / 2)) + 0.3 * along * along);
}

Surface ridge(Draws& draws, double noise) {
  return of_cube(ridge_at,
                 {between(draws, 0.2, 1.3), between(draws, 0.3, 0.9), between(draws, 0.12, 0.3),
                  between(draws, -0.3, 0.4), between(draws, 0.3, 2)},
                 noise);
}

double same(const CubePoint&, const std::vector<double>&) {
  return 1;
}

Surface flat(Draws&, double noise) {
  return of_cube(same, {}, noise);
}

struct Model {
  std::vector<double> bytes;
  double backward_ms = 60;
  double start_ms = 1.5;  ///< The cost of a bucket besides its bytes.
  double ms_per_mib = 1;
};

/// Tensors appear evenly during the backward pass. A bucket closes when it is full or its first
/// tensor has waited for a cycle; buckets run one by one. So tensors are not cut, and the threshold
/// acts in steps.
double step_ms(const Model& model, double threshold, double cycle_ms) {
  double free_at = 0, bucket = 0, opened = 0;
  const auto close = [&](double now) {
    free_at = std::max(free_at, now) + model.start_ms + model.ms_per_mib * bucket / 1048576;
    bucket = 0;
  };
  const auto count = static_cast<double>(model.bytes.size());
  for (std::size_t i = 0; i < model.bytes.size(); ++i) {
    const double now = model.backward_ms * static_cast<double>(i) / (count - 1);
    if (bucket > 0 && now - opened >= cycle_ms) close(opened + cycle_ms);
    if (bucket > 0 && bucket + model.bytes[i] > threshold) close(now);
    if (bucket == 0) opened = now;
    bucket += model.bytes[i];
  }
  close(std::min(model.backward_ms, opened + cycle_ms));
  return 20 + std::max(model.backward_ms, free_at);
}

Surface stepped(Draws& draws, double noise) {
  Model model{.backward_ms = between(draws, 20, 100),
              .start_ms = between(draws, 0.2, 3),
              .ms_per_mib = between(draws, 0.3, 3)};
  const auto count = 20 + draws.below(100);
  const double large = between(draws, 1, 12), small = between(draws, 0.02, 0.6);
  const auto period = 3 + draws.below(12);
  for (std::size_t i = 0; i < count; ++i)
    model.bytes.push_back(1048576 * (i % period == 0 ? large : small * (0.5 + draws.uniform())));
  auto surface = surface_of_fusion();
  surface.truth = [model](const Setting& setting) {
    return 1 / step_ms(model, static_cast<double>(std::get<std::int64_t>(setting[0])),
                       static_cast<double>(std::get<std::int64_t>(setting[1])) / 1000);
  };
  finish(surface, noise);
  return surface;
}

/// A table of 6 x 5 values as recordings are, with a slope and differences from cell to cell.
double cell_of(const CubePoint& point, const std::vector<double>& n) {
  const auto row = std::min<std::size_t>(5, static_cast<std::size_t>(point[0] * 6));
  const auto column = std::min<std::size_t>(4, static_cast<std::size_t>(point[1] * 5));
  return n[5 * row + column];
}

Surface cells(Draws& draws, double noise) {
  const double x = between(draws, 0.3, 1), y = between(draws, 0.1, 0.9);
  const double steep = between(draws, 0.5, 4), rough = between(draws, 0.02, 0.15);
  std::vector<double> numbers;
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 5; ++j) {
      const double far = std::hypot((i + 0.5) / 6 - x, (j + 0.5) / 5 - y);
      numbers.push_back(std::exp(-steep * far * far + rough * draws.normal()));
    }
  }
  return of_cube(cell_of, numbers, noise);
}

struct Family {
  const char* name;
  Surface (*make)(Draws& draws, double noise);
};

constexpr std::array<Family, 5> kFamilies{
    {{"smooth", smooth}, {"ridge", ridge}, {"stepped", stepped}, {"cells", cells}, {"flat", flat}}};

}  // namespace

std::vector<SurfaceGroup> made_families(std::uint64_t first, std::uint64_t count) {
  std::vector<SurfaceGroup> groups;
  for (const auto& family : kFamilies) {
    for (const double noise : {0.01, 0.03, 0.1}) {
      SurfaceGroup group{.name = fmt::format("{}, noise {:.0f} %", family.name, 100 * noise)};
      for (std::uint64_t i = first; i < first + count; ++i) {
        Draws draws(i * 1000003 + 17);
        group.members.push_back(family.make(draws, noise));
      }
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace horo::bench
