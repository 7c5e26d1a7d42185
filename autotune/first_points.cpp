// SPDX-License-Identifier: Apache-2.0
#include "autotune/first_points.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autotune/draws.hpp"

namespace horo::autotune {

namespace {

constexpr std::size_t kLeastEven = 3;
constexpr std::size_t kMostEven = 8;
constexpr std::size_t kShifts = 64;
/// Even points keep this distance from the faces of the cube, where values are extreme.
constexpr double kMargin = 0.08;

void add_once(std::vector<Setting>& points, Setting setting) {
  if (std::find(points.begin(), points.end(), setting) == points.end())
    points.push_back(std::move(setting));
}

double least_distance(const std::vector<CubePoint>& points) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t a = 0; a < points.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      double squares = 0;
      for (std::size_t j = 0; j < points[a].size(); ++j)
        squares += (points[a][j] - points[b][j]) * (points[a][j] - points[b][j]);
      least = std::min(least, squares);
    }
  }
  return least;
}

/// `count` points of Halton's sequence behind the default, all shifted alike. Of several shifts,
/// the one is taken that keeps the points and the default farthest apart.
std::vector<CubePoint> even_points(const CubePoint& fallback, std::size_t count) {
  std::vector<CubePoint> best;
  for (std::size_t shift = 0; shift < kShifts; ++shift) {
    std::vector<CubePoint> points{fallback};
    for (std::size_t i = 0; i < count; ++i) {
      CubePoint point;
      for (std::size_t j = 0; j < fallback.size(); ++j) {
        const double sum = halton(i, j) + halton(shift, (j + 1) % kHaltonDimensions);
        point.push_back(kMargin + (1 - 2 * kMargin) * (sum - std::floor(sum)));
      }
      points.push_back(std::move(point));
    }
    if (best.empty() || least_distance(points) > least_distance(best)) best = std::move(points);
  }
  best.erase(best.begin());
  return best;
}

}  // namespace

std::vector<Setting> first_points(const SearchSpace& space, const std::vector<Setting>& hints) {
  std::vector<Setting> points{space.fallback()};
  for (const auto& hint : hints) add_once(points, hint);
  const auto dimensions = space.free().size();
  const auto fallback = space.encode(space.fallback());
  std::size_t numbers = 0;
  for (std::size_t j = 0; j < dimensions; ++j) {
    const auto count = space.categories(j);
    if (count == 0) ++numbers;
    for (std::size_t c = 0; c < count; ++c) {
      CubePoint point = fallback;
      point[j] = (static_cast<double>(c) + 0.5) / static_cast<double>(count);
      add_once(points, space.decode(point));
    }
  }
  const auto even = numbers == 0 ? 0 : std::clamp(2 * numbers + 1, kLeastEven, kMostEven);
  for (const auto& point : even_points(fallback, even)) add_once(points, space.decode(point));
  points.push_back(space.fallback());
  return points;
}

}  // namespace horo::autotune
