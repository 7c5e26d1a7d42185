// SPDX-License-Identifier: Apache-2.0
#include "autotune/chance/expected_maximum.hpp"

#include <algorithm>
#include <cmath>

#include "autotune/chance/probability.hpp"

namespace horo::autotune {

namespace {

/// Where `above`, which is steeper, begins to exceed `below`.
double crossing(const Line& below, const Line& above) {
  return (below.at_zero - above.at_zero) / (above.slope - below.slope);
}

/// The lines that are the largest somewhere, from left to right.
std::vector<Line> upper_hull(std::vector<Line> lines) {
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.slope != b.slope ? a.slope < b.slope : a.at_zero < b.at_zero;
  });
  std::vector<Line> hull;
  for (const auto& line : lines) {
    if (!hull.empty() && hull.back().slope == line.slope) hull.pop_back();
    while (hull.size() > 1 &&
           crossing(hull[hull.size() - 2], line) <= crossing(hull[hull.size() - 2], hull.back()))
      hull.pop_back();
    hull.push_back(line);
  }
  return hull;
}

}  // namespace

double expected_maximum(std::vector<Line> lines) {
  const auto hull = upper_hull(std::move(lines));
  // The first line everywhere, and from each crossing on what the next one has more.
  double sum = hull.front().at_zero;
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const double from = crossing(hull[i - 1], hull[i]);
    const double steeper = hull[i].slope - hull[i - 1].slope;
    sum += steeper * (normal_density(from) - from * normal_cumulative(-from));
  }
  return sum;
}

}  // namespace horo::autotune
