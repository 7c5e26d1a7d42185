// SPDX-License-Identifier: Apache-2.0
#include "autotune/search_space.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "autotune/chance/draws.hpp"
#include "autotune/dimension_rules.hpp"

namespace horo::autotune {

std::string to_text(const Value& value) {
  if (const auto* name = std::get_if<std::string>(&value)) return *name;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  return fmt::format("{}", std::get<double>(value));
}

Result<SearchSpace> SearchSpace::make(std::vector<Dimension> dimensions) {
  if (dimensions.size() > kHaltonDimensions) {
    return fail(Errc::invalid_argument, "{} dimensions, at most {} can be searched at once",
                dimensions.size(), kHaltonDimensions);
  }
  std::vector<Dimension> before;
  for (const auto& dimension : dimensions) {
    HORO_TRY_STATUS(check_dimension(dimension, before));
    before.push_back(dimension);
  }
  return SearchSpace(std::move(dimensions));
}

SearchSpace::SearchSpace(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {
  for (const auto& dimension : dimensions_)
    fallback_.push_back(dimension.fixed.value_or(dimension.fallback));
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (!dimensions_[i].fixed && values_of(dimensions_[i]) > 1 && can_count(i)) free_.push_back(i);
  }
}

std::size_t SearchSpace::index_of(const std::string& name) const {
  const auto found = std::find_if(dimensions_.begin(), dimensions_.end(),
                                  [&](const Dimension& d) { return d.name == name; });
  return static_cast<std::size_t>(found - dimensions_.begin());
}

bool SearchSpace::counts(std::size_t dimension, const Setting& setting) const {
  const auto& when = dimensions_[dimension].when;
  if (!when) return true;
  const auto other = index_of(when->dimension);
  return counts(other, setting) && std::get<std::string>(setting[other]) == when->category;
}

bool SearchSpace::can_count(std::size_t dimension) const {
  const auto& when = dimensions_[dimension].when;
  if (!when) return true;
  const auto other = index_of(when->dimension);
  const auto& fixed = dimensions_[other].fixed;
  return can_count(other) && (!fixed || std::get<std::string>(*fixed) == when->category);
}

std::size_t SearchSpace::categories(std::size_t coordinate) const {
  const auto* names = std::get_if<Categories>(&dimensions_[free_[coordinate]].range);
  return names == nullptr ? 0 : names->names.size();
}

Setting SearchSpace::decode(const CubePoint& point) const {
  HORO_CHECK(point.size() == free_.size());
  Setting setting = fallback_;
  for (std::size_t i = 0; i < free_.size(); ++i) {
    // The category that a condition needs stands before the dimension and has its final value.
    if (counts(free_[i], setting)) setting[free_[i]] = from_unit(dimensions_[free_[i]], point[i]);
  }
  return setting;
}

CubePoint SearchSpace::encode(const Setting& setting) const {
  HORO_CHECK(setting.size() == dimensions_.size());
  CubePoint point;
  for (const auto dimension : free_)
    point.push_back(to_unit(dimensions_[dimension], setting[dimension]));
  return point;
}

Status SearchSpace::check(const Setting& setting) const {
  if (setting.size() != dimensions_.size()) {
    return fail(Errc::invalid_argument, "a setting of {} values for {} dimensions", setting.size(),
                dimensions_.size());
  }
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    HORO_TRY_STATUS(check_value(dimensions_[i], setting[i]));
    const bool is_free = std::find(free_.begin(), free_.end(), i) != free_.end();
    if ((!is_free || !counts(i, setting)) && setting[i] != fallback_[i]) {
      return fail(Errc::invalid_argument, "'{}' is {}, and must be {} here", dimensions_[i].name,
                  to_text(setting[i]), to_text(fallback_[i]));
    }
  }
  return {};
}

std::string SearchSpace::describe(const Setting& setting) const {
  std::string text;
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    if (!counts(i, setting)) continue;
    text +=
        fmt::format("{}{}={}", text.empty() ? "" : " ", dimensions_[i].name, to_text(setting[i]));
  }
  return text;
}

}  // namespace horo::autotune
