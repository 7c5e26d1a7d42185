// SPDX-License-Identifier: Apache-2.0
#include "autotune/search_space.hpp"

#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

using namespace horo::autotune;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

Dimension threshold() {
  return {.name = "threshold",
          .range = IntegerRange{.least = 0, .most = 256 * kMiB, .step = 65536},
          .fallback = 64 * kMiB};
}

Dimension cycle() {
  return {.name = "cycle",
          .range = RealRange{.least = 0.01, .most = 100, .scale = Scale::logarithmic},
          .fallback = 1.0};
}

Dimension path() {
  return {.name = "path", .range = Categories{{"flat", "tree", "ring"}}, .fallback = "flat"};
}

Dimension radix() {
  return {.name = "radix",
          .range = IntegerRange{.least = 2, .most = 32},
          .fallback = std::int64_t{4},
          .when = Condition{.dimension = "path", .category = "tree"}};
}

SearchSpace space_of(std::vector<Dimension> dimensions) {
  auto space = SearchSpace::make(std::move(dimensions));
  REQUIRE(space.has_value());
  return std::move(space).value();
}

std::string error_of(std::vector<Dimension> dimensions) {
  const auto space = SearchSpace::make(std::move(dimensions));
  return space ? "none" : space.error().message;
}

template <typename Change>
std::string error_with(Dimension dimension, Change change) {
  change(dimension);
  return error_of({std::move(dimension)});
}

std::string error_with(IntegerRange range) {
  return error_with(threshold(), [&](Dimension& dimension) {
    dimension.range = range;
    dimension.fallback = range.least;
  });
}

}  // namespace

TEST_CASE("a setting survives the way to the unit cube and back exactly") {
  const auto space = space_of({threshold(), cycle(), path(), radix()});
  const std::string tree = "tree";
  for (std::int64_t steps = 0; steps <= 4096; steps += 7) {
    const double milliseconds =
        std::round(std::pow(10, 4 * static_cast<double>(steps) / 4096) * 10) / 1000;
    const Setting setting{steps * 65536, milliseconds, tree, 2 + steps % 31};
    REQUIRE(space.check(setting).has_value());
    const auto point = space.encode(setting);
    for (const double x : point) REQUIRE((x >= 0 && x <= 1));
    REQUIRE(space.decode(point) == setting);
  }
  CHECK(space.decode({1, 1, 1, 1}) == Setting{256 * kMiB, 100.0, "ring", std::int64_t{4}});
  CHECK(space.decode({-5, std::nan(""), 0, 0}) ==
        Setting{std::int64_t{0}, 0.01, "flat", std::int64_t{4}});
}

TEST_CASE("a logarithmic dimension gives each factor the same share, and may begin at 0") {
  const auto space = space_of({cycle(), threshold()});
  CHECK(space.encode({1.0, std::int64_t{0}})[0] == Approx(0.5));
  CHECK(space.encode({10.0, std::int64_t{0}})[0] == Approx(0.75));
  const double low = space.encode({1.0, 4 * kMiB})[1];
  const double middle = space.encode({1.0, 16 * kMiB})[1];
  const double high = space.encode({1.0, 64 * kMiB})[1];
  CHECK(high - middle == Approx(middle - low).epsilon(0.02));
}

TEST_CASE("a conditional dimension keeps its default where it does not count") {
  const auto space = space_of({path(), radix()});
  CHECK(space.decode({0.1, 0.9}) == Setting{"flat", std::int64_t{4}});
  CHECK(std::get<std::int64_t>(space.decode({0.5, 1})[1]) == 32);
  CHECK(space.describe(space.decode({0.1, 0.9})) == "path=flat");
  CHECK(space.describe(space.decode({0.5, 1})) == "path=tree radix=32");
  CHECK_FALSE(space.check({"flat", std::int64_t{8}}).has_value());
  CHECK(space.check({"tree", std::int64_t{8}}).has_value());
}

TEST_CASE("fixed values leave the cube, and a space of them has nothing to tune") {
  auto fixed = cycle();
  fixed.fixed = 5.0;
  const auto one = space_of({fixed, threshold()});
  CHECK(one.free() == std::vector<std::size_t>{1});
  CHECK(one.fallback() == Setting{5.0, 64 * kMiB});
  CHECK_FALSE(one.check({1.0, 64 * kMiB}).has_value());
  CHECK(space_of({fixed}).nothing_to_tune());
  CHECK(space_of({}).nothing_to_tune());
  // A dimension whose condition cannot hold any more is not searched either.
  auto flat = path();
  flat.fixed = "flat";
  CHECK(space_of({flat, radix()}).nothing_to_tune());
  auto single = path();
  single.range = Categories{{"flat"}};
  CHECK(space_of({single}).nothing_to_tune());
}

TEST_CASE("an absurd range is refused with the name of the dimension") {
  CHECK(error_with({.least = 5, .most = 3}) == "the range of 'threshold' is empty: 5 to 3");
  CHECK(error_with({.least = 0, .most = 5, .step = 0}) ==
        "the step of 'threshold' is 0, it must be above 0");
  CHECK(error_with({.least = 0, .most = 5, .step = 2}) ==
        "the range of 'threshold', 0 to 5, is not a whole number of steps of 2");
  CHECK(error_with({.least = -1, .most = 5}) ==
        "'threshold' begins at -1: a logarithmic range of whole numbers begins at 0 or above");
  CHECK(error_with({.least = 0, .most = std::numeric_limits<std::int64_t>::max()})
            .find("must lie within +-2^53") != std::string::npos);
  CHECK(error_with(cycle(), [](auto& d) {
          d.range = RealRange{.least = 0, .most = NAN};
        }).find("must be finite") != std::string::npos);
  CHECK(error_with(cycle(), [](auto& d) {
          d.range = RealRange{.least = 0, .most = 1, .scale = Scale::logarithmic};
        }) == "'cycle' begins at 0: a logarithmic range of real numbers begins above 0");
  CHECK(error_with(path(), [](auto& d) { d.range = Categories{}; }) == "'path' has no categories");
}

TEST_CASE("a default or fixed value outside its range is refused with both") {
  CHECK(error_with(cycle(), [](auto& d) { d.fallback = 200.0; }) ==
        "the default: 'cycle' is 200, allowed is 0.01 to 100");
  CHECK(error_with(cycle(), [](auto& d) { d.fallback = 1.2345678; }) ==
        "the default: 'cycle' is 1.2345678, allowed are 6 digits");
  CHECK(error_with(threshold(), [](auto& d) { d.fallback = std::int64_t{1}; }) ==
        "the default: 'threshold' is 1, allowed are steps of 65536 from 0");
  CHECK(error_with(path(), [](auto& d) { d.fixed = "star"; }) ==
        "the fixed value: 'path' is star, allowed is flat, tree, ring");
  CHECK(error_with(path(), [](auto& d) { d.fallback = 3.0; }) ==
        "the default: 'path' is 3, allowed is flat, tree, ring");
}

TEST_CASE("a condition must name a category of a dimension before it, and names differ") {
  CHECK(error_of({radix()}) ==
        "'radix' depends on 'path', which is not a dimension that stands before it");
  CHECK(error_of({path(), path()}) == "two dimensions have the name 'path'");
  auto wrong = radix();
  wrong.when->category = "star";
  CHECK(error_of({path(), wrong}) ==
        "the condition of 'radix': 'path' is star, allowed is flat, tree, ring");
}
