// SPDX-License-Identifier: Apache-2.0
#include "autotune/dimension_rules.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/format.h>

namespace horo::autotune {

namespace {

/// Whole numbers up to here are exact as double.
constexpr std::int64_t kMostInteger = std::int64_t{1} << 53U;

/// `value` with kRealDigits significant digits. Text is exact in decimal digits, and arithmetic
/// with powers of ten is not.
double rounded(double value) {
  const auto text = fmt::format("{:.{}e}", value, kRealDigits - 1);
  double result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

double offset(const IntegerRange& range) {
  return range.least == 0 ? static_cast<double>(range.step) : 0;
}

double scaled(const IntegerRange& range, std::int64_t value) {
  const auto number = static_cast<double>(value);
  return range.scale == Scale::linear ? number : std::log(number + offset(range));
}

double scaled(const RealRange& range, double value) {
  return range.scale == Scale::linear ? value : std::log(value);
}

template <typename Range, typename Number>
double unit_of(const Range& range, Number value) {
  const double least = scaled(range, range.least);
  const double most = scaled(range, range.most);
  return most > least ? (scaled(range, value) - least) / (most - least) : 0;
}

template <typename Range>
double unscaled(const Range& range, double unit) {
  const double least = scaled(range, range.least);
  const double number = least + unit * (scaled(range, range.most) - least);
  return range.scale == Scale::linear ? number : std::exp(number);
}

Value number_at(const IntegerRange& range, double unit) {
  double number = unscaled(range, unit);
  if (range.scale == Scale::logarithmic) number -= offset(range);
  const auto steps =
      std::llround((number - static_cast<double>(range.least)) / static_cast<double>(range.step));
  return std::clamp<std::int64_t>(range.least + steps * range.step, range.least, range.most);
}

Value number_at(const RealRange& range, double unit) {
  return std::clamp(rounded(unscaled(range, unit)), range.least, range.most);
}

Value number_at(const Categories& range, double unit) {
  const auto count = range.names.size();
  const auto index = static_cast<std::size_t>(unit * static_cast<double>(count));
  return range.names[std::min(index, count - 1)];
}

std::size_t index_in(const Categories& range, const std::string& name) {
  return static_cast<std::size_t>(std::find(range.names.begin(), range.names.end(), name) -
                                  range.names.begin());
}

Status check_range(const std::string& name, const IntegerRange& range) {
  if (range.step <= 0) {
    return fail(Errc::invalid_argument, "the step of '{}' is {}, it must be above 0", name,
                range.step);
  }
  if (range.least > range.most) {
    return fail(Errc::invalid_argument, "the range of '{}' is empty: {} to {}", name, range.least,
                range.most);
  }
  if (range.least < -kMostInteger || range.most > kMostInteger) {
    return fail(Errc::invalid_argument, "the range of '{}', {} to {}, must lie within +-2^53", name,
                range.least, range.most);
  }
  if ((range.most - range.least) % range.step != 0) {
    return fail(Errc::invalid_argument,
                "the range of '{}', {} to {}, is not a whole number of steps of {}", name,
                range.least, range.most, range.step);
  }
  if (range.scale == Scale::logarithmic && range.least < 0) {
    return fail(Errc::invalid_argument,
                "'{}' begins at {}: a logarithmic range of whole numbers begins at 0 or above",
                name, range.least);
  }
  return {};
}

Status check_range(const std::string& name, const RealRange& range) {
  if (!std::isfinite(range.least) || !std::isfinite(range.most) || range.least > range.most) {
    return fail(Errc::invalid_argument, "the range of '{}', {} to {}, must be finite and not empty",
                name, range.least, range.most);
  }
  if (range.scale == Scale::logarithmic && range.least <= 0) {
    return fail(Errc::invalid_argument,
                "'{}' begins at {}: a logarithmic range of real numbers begins above 0", name,
                range.least);
  }
  for (const double end : {range.least, range.most}) {
    if (rounded(end) != end) {
      return fail(Errc::invalid_argument, "{} in the range of '{}' has more than {} digits", end,
                  name, kRealDigits);
    }
  }
  return {};
}

Status check_range(const std::string& name, const Categories& range) {
  if (range.names.empty()) return fail(Errc::invalid_argument, "'{}' has no categories", name);
  const std::set<std::string> different(range.names.begin(), range.names.end());
  if (different.size() != range.names.size())
    return fail(Errc::invalid_argument, "'{}' has two categories of the same name", name);
  return {};
}

template <typename T>
const T* value_as(const Value& value) {
  return std::get_if<T>(&value);
}

Status check_in(const Dimension& dimension, const IntegerRange& range, const Value& value) {
  const auto* number = value_as<std::int64_t>(value);
  if (number == nullptr) {
    return fail(Errc::invalid_argument, "'{}' is a whole number, not {}", dimension.name,
                to_text(value));
  }
  if (*number < range.least || *number > range.most) {
    return fail(Errc::invalid_argument, "'{}' is {}, allowed is {} to {}", dimension.name, *number,
                range.least, range.most);
  }
  if ((*number - range.least) % range.step != 0) {
    return fail(Errc::invalid_argument, "'{}' is {}, allowed are steps of {} from {}",
                dimension.name, *number, range.step, range.least);
  }
  return {};
}

Status check_in(const Dimension& dimension, const RealRange& range, const Value& value) {
  const auto* number = value_as<double>(value);
  if (number == nullptr) {
    return fail(Errc::invalid_argument, "'{}' is a real number, not {}", dimension.name,
                to_text(value));
  }
  if (*number < range.least || *number > range.most) {
    return fail(Errc::invalid_argument, "'{}' is {}, allowed is {} to {}", dimension.name, *number,
                range.least, range.most);
  }
  if (rounded(*number) != *number) {
    return fail(Errc::invalid_argument, "'{}' is {}, allowed are {} digits", dimension.name,
                *number, kRealDigits);
  }
  return {};
}

Status check_in(const Dimension& dimension, const Categories& range, const Value& value) {
  const auto* name = value_as<std::string>(value);
  if (name == nullptr || index_in(range, *name) == range.names.size()) {
    return fail(Errc::invalid_argument, "'{}' is {}, allowed is {}", dimension.name, to_text(value),
                fmt::join(range.names, ", "));
  }
  return {};
}

Status check_condition(const Dimension& dimension, const std::vector<Dimension>& before) {
  const auto& when = *dimension.when;
  const auto found = std::find_if(before.begin(), before.end(),
                                  [&](const Dimension& d) { return d.name == when.dimension; });
  if (found == before.end()) {
    return fail(Errc::invalid_argument,
                "'{}' depends on '{}', which is not a dimension that stands before it",
                dimension.name, when.dimension);
  }
  if (!std::holds_alternative<Categories>(found->range)) {
    return fail(Errc::invalid_argument, "'{}' depends on '{}', which has no categories",
                dimension.name, when.dimension);
  }
  return check_value(*found, when.category)
      .context(fmt::format("the condition of '{}'", dimension.name));
}

}  // namespace

int values_of(const Dimension& dimension) {
  if (const auto* names = std::get_if<Categories>(&dimension.range))
    return names->names.size() > 1 ? 2 : 1;
  if (const auto* whole = std::get_if<IntegerRange>(&dimension.range))
    return whole->most > whole->least ? 2 : 1;
  const auto& real = std::get<RealRange>(dimension.range);
  return real.most > real.least ? 2 : 1;
}

double to_unit(const Dimension& dimension, const Value& value) {
  if (const auto* whole = std::get_if<IntegerRange>(&dimension.range))
    return unit_of(*whole, std::get<std::int64_t>(value));
  if (const auto* real = std::get_if<RealRange>(&dimension.range))
    return unit_of(*real, std::get<double>(value));
  // The middle of the category's share of the line, so that rounding cannot reach a neighbour.
  const auto& names = std::get<Categories>(dimension.range);
  return (static_cast<double>(index_in(names, std::get<std::string>(value))) + 0.5) /
         static_cast<double>(names.names.size());
}

Value from_unit(const Dimension& dimension, double unit) {
  const double inside = std::isnan(unit) ? 0 : std::clamp(unit, 0.0, 1.0);
  return std::visit([inside](const auto& range) { return number_at(range, inside); },
                    dimension.range);
}

Status check_value(const Dimension& dimension, const Value& value) {
  return std::visit([&](const auto& range) { return check_in(dimension, range, value); },
                    dimension.range);
}

Status check_dimension(const Dimension& dimension, const std::vector<Dimension>& before) {
  if (dimension.name.empty()) return fail(Errc::invalid_argument, "a dimension has no name");
  for (const auto& other : before) {
    if (other.name == dimension.name)
      return fail(Errc::invalid_argument, "two dimensions have the name '{}'", dimension.name);
  }
  HORO_TRY_STATUS(std::visit([&](const auto& range) { return check_range(dimension.name, range); },
                             dimension.range));
  HORO_TRY_STATUS(check_value(dimension, dimension.fallback).context("the default"));
  if (dimension.fixed)
    HORO_TRY_STATUS(check_value(dimension, *dimension.fixed).context("the fixed value"));
  if (dimension.when) HORO_TRY_STATUS(check_condition(dimension, before));
  return {};
}

}  // namespace horo::autotune
