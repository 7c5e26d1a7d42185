// SPDX-License-Identifier: Apache-2.0
#include "autotune/acquisition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "autotune/chance/probability.hpp"

namespace horo::autotune {

namespace {

constexpr std::size_t kEven = 256;
constexpr std::size_t kBestTried = 5;
constexpr std::size_t kAround = 24;  ///< Candidates near each of the best.
constexpr std::size_t kRefined = 3;
constexpr int kRefinements = 5;
/// A category is ruled out if the best that it may bring, with so many deviations, is too little.
constexpr double kSure = 2.5;
constexpr std::size_t kLeastTried = 2;

/// The point of the nearest setting, so that a prediction is about what would be measured.
CubePoint snapped(const SearchSpace& space, const CubePoint& point) {
  return space.encode(space.decode(point));
}

double wrapped(double value) {
  return value - std::floor(value);
}

CubePoint near(const SearchSpace& space, const CubePoint& centre, RandomDraws& draws) {
  CubePoint point = centre;
  const double width = std::pow(10, -0.5 - 1.5 * draws.uniform());
  for (std::size_t j = 0; j < point.size(); ++j) {
    const bool moves = draws.uniform() < 0.6;
    const double step = draws.normal() * width;
    const double anywhere = draws.uniform();
    if (!moves) continue;
    if (space.categories(j) == 0) {
      point[j] = std::clamp(point[j] + step, 0.0, 1.0);
    } else if (anywhere < 0.3) {
      point[j] = anywhere / 0.3;
    }
  }
  return snapped(space, point);
}

std::vector<std::size_t> best_groups(const ResponseModel& model) {
  std::vector<std::size_t> order(model.groups().size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return model.groups()[a].mean > model.groups()[b].mean;
  });
  order.resize(std::min(order.size(), kBestTried));
  return order;
}

std::vector<CubePoint> candidates(const SearchSpace& space, const ResponseModel& model,
                                  RandomDraws& draws) {
  std::vector<CubePoint> points;
  for (const auto& group : model.groups()) points.push_back(group.point);
  const auto dimensions = space.free().size();
  CubePoint shift;
  for (std::size_t j = 0; j < dimensions; ++j) shift.push_back(draws.uniform());
  for (std::size_t i = 0; i < kEven; ++i) {
    CubePoint point;
    for (std::size_t j = 0; j < dimensions; ++j) point.push_back(wrapped(halton(i, j) + shift[j]));
    points.push_back(snapped(space, point));
  }
  for (const auto group : best_groups(model)) {
    for (std::size_t i = 0; i < kAround; ++i)
      points.push_back(near(space, model.groups()[group].point, draws));
  }
  return points;
}

/// Neighbours in one coordinate: a step up and down, or every other category.
std::vector<CubePoint> neighbours(const SearchSpace& space, const CubePoint& centre, double step) {
  std::vector<CubePoint> points;
  const auto add = [&](std::size_t j, double value) {
    CubePoint point = centre;
    point[j] = std::clamp(value, 0.0, 1.0);
    points.push_back(snapped(space, point));
  };
  for (std::size_t j = 0; j < centre.size(); ++j) {
    const auto count = space.categories(j);
    for (std::size_t c = 0; c < count; ++c)
      add(j, (static_cast<double>(c) + 0.5) / static_cast<double>(count));
    if (count != 0) continue;
    add(j, centre[j] - step);
    add(j, centre[j] + step);
  }
  return points;
}

bool is_ruled_out(const CubePoint& point, const std::vector<RuledOut>& ruled_out) {
  return std::any_of(ruled_out.begin(), ruled_out.end(), [&](const RuledOut& one) {
    return std::abs(point[one.coordinate] - one.unit) < 1e-9;
  });
}

/// The points with the value of measuring them. It is -infinity for points that are ruled out.
struct Rated {
  CubePoint point;
  double rating = -std::numeric_limits<double>::infinity();
  double improvement = 0;  ///< The logarithm of what is expected. It decides between equal ratings.
  Prediction prediction;
};

std::vector<Rated> rated(const ResponseModel& model, const std::vector<CubePoint>& points,
                         const std::vector<RuledOut>& ruled_out) {
  const auto predictions = model.predict(points);
  const auto values = model.value_of_measuring(points);
  std::vector<Rated> result;
  for (std::size_t i = 0; i < points.size(); ++i) {
    result.push_back({.point = points[i],
                      .improvement = log_expected_improvement(predictions[i], model.incumbent()),
                      .prediction = predictions[i]});
    if (!is_ruled_out(points[i], ruled_out)) result.back().rating = values[i];
  }
  return result;
}

/// The number of measured settings with this category.
std::size_t tried(const ResponseModel& model, std::size_t coordinate, double unit) {
  std::size_t count = 0;
  for (const auto& group : model.groups()) {
    if (std::abs(group.point[coordinate] - unit) < 1e-9) ++count;
  }
  return count;
}

std::vector<RuledOut> ruled_out_by(const SearchSpace& space, const ResponseModel& model,
                                   const std::vector<Rated>& all) {
  std::vector<RuledOut> result;
  for (std::size_t j = 0; j < space.free().size(); ++j) {
    const auto count = space.categories(j);
    for (std::size_t c = 0; c < count; ++c) {
      const double unit = (static_cast<double>(c) + 0.5) / static_cast<double>(count);
      double most = -std::numeric_limits<double>::infinity();
      for (const auto& one : all) {
        if (std::abs(one.point[j] - unit) < 1e-9)
          most = std::max(most, one.prediction.mean + kSure * one.prediction.deviation);
      }
      if (most < model.incumbent() && tried(model, j, unit) >= kLeastTried)
        result.push_back({.coordinate = j, .unit = unit});
    }
  }
  return result;
}

bool is_better(const Rated& a, const Rated& b) {
  return a.rating != b.rating ? a.rating > b.rating : a.improvement > b.improvement;
}

/// Goes from a point to its best neighbour, with smaller steps each time that none is better.
Rated refined(const SearchSpace& space, const ResponseModel& model, Rated best,
              const std::vector<RuledOut>& ruled_out) {
  double step = 0.08;
  for (int i = 0; i < kRefinements; ++i) {
    const auto around = rated(model, neighbours(space, best.point, step), ruled_out);
    const auto found = std::min_element(around.begin(), around.end(), is_better);
    if (found != around.end() && is_better(*found, best)) {
      best = *found;
    } else {
      step /= 3;
    }
  }
  return best;
}

}  // namespace

double expected_improvement(const Prediction& prediction, double incumbent) {
  const double difference = prediction.mean - incumbent;
  if (!(prediction.deviation > 0)) return std::max(difference, 0.0);
  const double z = difference / prediction.deviation;
  return std::max(0.0,
                  difference * normal_cumulative(z) + prediction.deviation * normal_density(z));
}

double log_expected_improvement(const Prediction& prediction, double incumbent) {
  const double difference = prediction.mean - incumbent;
  if (!(prediction.deviation > 0))
    return difference > 0 ? std::log(difference) : -std::numeric_limits<double>::infinity();
  const double z = difference / prediction.deviation;
  if (z > -10) return std::log(expected_improvement(prediction, incumbent));
  // For far negative z, the improvement approaches density / z^2 times this series.
  const double series = std::log1p(-3 / (z * z));
  return std::log(prediction.deviation) - z * z / 2 - std::log(2 * std::numbers::pi) / 2 -
         2 * std::log(-z) + series;
}

NextPoint best_next_point(const SearchSpace& space, const ResponseModel& model,
                          RandomDraws& draws) {
  auto all = rated(model, candidates(space, model, draws), {});
  NextPoint next{.ruled_out = ruled_out_by(space, model, all)};
  std::erase_if(all, [&](const Rated& one) { return is_ruled_out(one.point, next.ruled_out); });
  for (const auto& one : all)
    next.gain = std::max(next.gain, expected_improvement(one.prediction, model.incumbent()));
  std::stable_sort(all.begin(), all.end(), is_better);
  if (all.size() > kRefined) all.resize(kRefined);
  for (auto& one : all) one = refined(space, model, one, next.ruled_out);
  const auto best = std::min_element(all.begin(), all.end(), is_better);
  HORO_CHECK(best != all.end());
  next.setting = space.decode(best->point);
  next.gain = std::max(next.gain, expected_improvement(best->prediction, model.incumbent()));
  return next;
}

}  // namespace horo::autotune
