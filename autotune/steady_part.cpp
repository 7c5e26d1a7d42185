// SPDX-License-Identifier: Apache-2.0
#include "autotune/steady_part.hpp"

#include <cmath>
#include <limits>

namespace horo::autotune {

namespace {

/// Fewer times cannot tell a beginning from noise.
constexpr std::size_t kLeastTimes = 6;

/// By so many standard errors of the difference a beginning must be slower.
constexpr double kClearErrors = 4;

/// By such a share a beginning must be slower. It is the error that a sample may have anyway.
constexpr double kLeastExcess = 0.01;

struct Cut {
  std::size_t first = 0;  ///< The first time that counts.
  double mean = 0;        ///< The mean of all times from there on.
  double squares = 0;     ///< Their squared deviations.
};

/// The best cut of all that leave half of the times or more.
Cut best_cut(std::span<const double> times) {
  Cut rest{.first = times.size()}, best;
  auto least = std::numeric_limits<double>::infinity();
  while (rest.first > 0) {
    const double time = times[--rest.first];
    const auto count = static_cast<double>(times.size() - rest.first);
    const double off = time - rest.mean;
    rest.mean += off / count;
    rest.squares += off * (time - rest.mean);
    const double error = rest.squares / (count * count);
    // Among equal cuts, the last one that is seen leaves out the least.
    if (2 * rest.first > times.size() || error > least) continue;
    least = error;
    best = rest;
  }
  return best;
}

}  // namespace

std::size_t steady_begin(std::span<const double> times) {
  if (times.size() < kLeastTimes) return 0;
  const auto cut = best_cut(times);
  if (cut.first == 0) return 0;
  double slow = 0;
  for (const double time : times.first(cut.first)) slow += time;
  const auto before = static_cast<double>(cut.first);
  const auto after = static_cast<double>(times.size() - cut.first);
  const double excess = slow / before - cut.mean;
  const double error = std::sqrt(cut.squares / (after - 1) * (1 / before + 1 / after));
  return excess > kClearErrors * error && excess > kLeastExcess * cut.mean ? cut.first : 0;
}

}  // namespace horo::autotune
