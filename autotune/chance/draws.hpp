// SPDX-License-Identifier: Apache-2.0
// Random numbers for the search. The distributions of the standard library differ between
// implementations, so these are written out: a seed gives the same numbers everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace horo::autotune {

/// Thread: owner.
class RandomDraws {
 public:
  explicit RandomDraws(std::uint64_t seed) : engine_(seed) {}

  /// From 0 up to, but without, 1.
  double uniform() { return static_cast<double>(engine_() >> 11U) * 0x1.0p-53; }

  /// One of 0 ... count - 1; `count` is not 0.
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(uniform() * static_cast<double>(count));
  }

  /// From the normal distribution with mean 0 and deviation 1.
  double normal();

 private:
  std::mt19937_64 engine_;
};

/// Coordinate `dimension` of point `index` of Halton's sequence, from 0 up to, but without, 1. The
/// points fill the unit cube evenly, whatever their number. `dimension` is below kHaltonDimensions.
double halton(std::size_t index, std::size_t dimension);

inline constexpr std::size_t kHaltonDimensions = 32;

}  // namespace horo::autotune
