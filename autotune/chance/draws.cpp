// SPDX-License-Identifier: Apache-2.0
#include "autotune/chance/draws.hpp"

#include <array>
#include <cmath>
#include <numbers>

#include "base/result.hpp"

namespace horo::autotune {

namespace {

constexpr std::array<std::size_t, kHaltonDimensions> kPrimes = {
    2,  3,  5,  7,  11, 13, 17, 19, 23, 29,  31,  37,  41,  43,  47,  53,
    59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131};

}  // namespace

double RandomDraws::normal() {
  // Box and Muller's method. The second number is not kept, so that the state is only the engine's.
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

double halton(std::size_t index, std::size_t dimension) {
  HORO_CHECK(dimension < kHaltonDimensions);
  const std::size_t base = kPrimes[dimension];
  // Point 0 would be a corner of the cube, in every dimension.
  double value = 0;
  double share = 1;
  for (std::size_t rest = index + 1; rest != 0; rest /= base) {
    share /= static_cast<double>(base);
    value += share * static_cast<double>(rest % base);
  }
  return value;
}

}  // namespace horo::autotune
