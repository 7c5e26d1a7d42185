// SPDX-License-Identifier: Apache-2.0
// The expected maximum of straight lines over a normal number. Pure.
#pragma once

#include <vector>

namespace horo::autotune {

struct Line {
  double at_zero = 0;
  double slope = 0;
};

/// The mean of the largest of `at_zero + slope * z` over a standard normal z. `lines` is not empty.
double expected_maximum(std::vector<Line> lines);

}  // namespace horo::autotune
