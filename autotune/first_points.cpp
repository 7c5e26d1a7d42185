// SPDX-License-Identifier: Apache-2.0
#include "autotune/first_points.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autotune/chance/draws.hpp"

namespace horo::autotune {

namespace {

constexpr std::size_t kLeastEven = 3;
constexpr std::size_t kMostEven = 8;
constexpr std::size_t kDraws = 32;
/// A point lies in the middle of its share, give or take half of this.
constexpr double kJitter = 0.6;

std::vector<std::size_t> permutation(std::size_t count, RandomDraws& draws) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto place = draws.below(i + 1);
    order[i] = order[place];
    order[place] = i;
  }
  return order;
}

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

/// `count` points, of which each has a share of each coordinate's line for itself (a Latin
/// hypercube). Of several draws, the one is taken that keeps the points and the default farthest
/// apart.
std::vector<CubePoint> even_points(const CubePoint& fallback, std::size_t count,
                                   RandomDraws& draws) {
  std::vector<CubePoint> best;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    std::vector<CubePoint> points(count + 1, fallback);
    for (std::size_t j = 0; j < fallback.size(); ++j) {
      const auto order = permutation(count, draws);
      for (std::size_t i = 0; i < count; ++i) {
        const double inside = 0.5 + kJitter * (draws.uniform() - 0.5);
        const double share = (static_cast<double>(order[i]) + inside) / static_cast<double>(count);
        points[i + 1][j] = share;
      }
    }
    if (best.empty() || least_distance(points) > least_distance(best)) best = std::move(points);
  }
  best.erase(best.begin());
  return best;
}

}  // namespace

std::vector<Setting> first_points(const SearchSpace& space, const std::vector<Setting>& hints,
                                  std::uint64_t seed, std::optional<std::size_t> even) {
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
  const auto count = numbers == 0 ? 0
                     : even       ? *even
                                  : std::clamp(2 * numbers + 1, kLeastEven, kMostEven);
  RandomDraws draws(seed);
  for (const auto& point : even_points(fallback, count, draws))
    add_once(points, space.decode(point));
  return points;
}

}  // namespace horo::autotune
