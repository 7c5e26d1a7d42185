// SPDX-License-Identifier: Apache-2.0
// The rules of a single dimension: which ranges and values make sense, and its coordinate.
#pragma once

#include <vector>

#include "autotune/search_space.hpp"
#include "base/result.hpp"

namespace horo::autotune {

/// The number of different values, at most 2; that is all a search must know.
int values_of(const Dimension& dimension);

/// The coordinate of a value of the dimension, from 0 to 1.
double to_unit(const Dimension& dimension, const Value& value);

/// The value whose coordinate is nearest.
Value from_unit(const Dimension& dimension, double unit);

/// Fails: invalid_argument.
Status check_value(const Dimension& dimension, const Value& value);

/// Checks range, fallback, fixed value and condition against the dimensions before this one.
/// Fails: invalid_argument.
Status check_dimension(const Dimension& dimension, const std::vector<Dimension>& before);

}  // namespace horo::autotune
