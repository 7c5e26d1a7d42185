// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/nearest.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace horo {

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<int> before(width);
  std::vector<int> last(width);
  std::vector<int> row(width);
  for (std::size_t j = 0; j < width; ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j < width; ++j) {
      const int replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[width - 1];
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known) {
  std::string_view best;
  // Up to a third of the letters may differ.
  int least = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  for (const auto candidate : known) {
    if (const int distance = edit_distance(word, candidate); distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  const auto best = nearest(word, known);
  return best.empty() ? std::string() : fmt::format("; did you mean '{}'?", best);
}

}  // namespace horo
