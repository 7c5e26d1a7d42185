// SPDX-License-Identifier: Apache-2.0
// The values among which a search looks for the best: dimensions, and points of their unit cube.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace horo::autotune {

enum class Scale : std::uint8_t { linear, logarithmic };

/// Whole numbers least, least + step, ... most. A logarithmic range may begin at 0: its distances
/// are then those of the logarithm of value + step.
struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::int64_t step = 1;
  Scale scale = Scale::logarithmic;
};

/// Values have kRealDigits significant digits, so that a value survives text and the unit cube.
struct RealRange {
  double least = 0;
  double most = 0;
  Scale scale = Scale::linear;
};

inline constexpr int kRealDigits = 6;

/// Values without an order.
struct Categories {
  std::vector<std::string> names;
};

/// A whole number, a real number or the name of a category, as the dimension's range says.
using Value = std::variant<std::int64_t, double, std::string>;

/// A dimension counts only where the category of another one, which stands before it, is this one.
struct Condition {
  std::string dimension;
  std::string category;
};

struct Dimension {
  std::string name;
  std::variant<IntegerRange, RealRange, Categories> range;
  Value fallback;  ///< In force without tuning. Also wherever the dimension does not count.
  std::optional<Value> fixed;  ///< Set by the user: never searched.
  std::optional<Condition> when;
};

/// One value for each dimension of a space, in the dimensions' order.
using Setting = std::vector<Value>;

/// Coordinates from 0 to 1, one for each free dimension.
using CubePoint = std::vector<double>;

std::string to_text(const Value& value);

/// Thread: immutable.
class SearchSpace {
 public:
  /// Fails: invalid_argument (a dimension that cannot be searched; the message names it).
  static Result<SearchSpace> make(std::vector<Dimension> dimensions);

  const std::vector<Dimension>& dimensions() const { return dimensions_; }

  /// Indices of the dimensions that have more than one value: the coordinates of the cube.
  const std::vector<std::size_t>& free() const { return free_; }

  /// Whether no dimension can be searched: each one is fixed, or has one value.
  bool nothing_to_tune() const { return free_.empty(); }

  /// The number of categories of the free dimension `coordinate`; 0: it is a range of numbers.
  std::size_t categories(std::size_t coordinate) const;

  /// The setting without tuning: fallbacks, and what the user fixed.
  const Setting& fallback() const { return fallback_; }

  /// The setting nearest to a point of the cube. Coordinates of other dimensions do not matter
  /// where a dimension does not count.
  Setting decode(const CubePoint& point) const;

  /// The point of a setting: decode(encode(s)) == s for every setting that `check` accepts.
  CubePoint encode(const Setting& setting) const;

  /// Fails: invalid_argument (a value is not in its range, not in steps, or not the fixed one).
  Status check(const Setting& setting) const;

  /// "fusion.threshold=67108864 cycle.time=0.5", of the dimensions that count.
  std::string describe(const Setting& setting) const;

 private:
  explicit SearchSpace(std::vector<Dimension> dimensions);

  bool counts(std::size_t dimension, const Setting& setting) const;
  bool can_count(std::size_t dimension) const;
  std::size_t index_of(const std::string& name) const;

  std::vector<Dimension> dimensions_;
  std::vector<std::size_t> free_;
  Setting fallback_;
};

}  // namespace horo::autotune
