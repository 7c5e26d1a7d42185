// SPDX-License-Identifier: Apache-2.0
// All draws have fixed seeds.
#include "autotune/search.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <catch2/catch.hpp>

#include "autotune/chance/draws.hpp"
#include "autotune/first_points.hpp"

using namespace horo::autotune;

namespace {

using Score = std::function<double(const Setting&)>;

SearchSpace plane() {
  return std::move(
             SearchSpace::make(
                 {{.name = "x", .range = RealRange{.least = 0, .most = 1}, .fallback = 0.1},
                  {.name = "path", .range = Categories{{"slow", "fast"}}, .fallback = "slow"}}))
      .value();
}

/// Its best is 2.4, at x = 0.6 with the fast path; the default has about 1.
double hill(const Setting& setting) {
  const double x = std::get<double>(setting[0]);
  const double path = std::get<std::string>(setting[1]) == "fast" ? 1 : 0;
  return 1.4 + path - 1.5 * (x - 0.6) * (x - 0.6);
}

Search search_of(SearchOptions options) {
  auto search = Search::make(plane(), std::move(options));
  REQUIRE(search.has_value());
  return std::move(search).value();
}

Outcome run(Search& search, const Score& score) {
  for (int i = 0; i < 200; ++i) {
    const auto proposal = search.ask();
    if (proposal.stage == SearchStage::settled) break;
    REQUIRE(search.tell(proposal.setting, score(proposal.setting), 0).has_value());
  }
  return search.outcome();
}

Score with_noise(const Score& truth, double share, std::uint64_t seed) {
  return [truth, share, draws = RandomDraws(seed)](const Setting& setting) mutable {
    return truth(setting) * (1 + share * draws.normal());
  };
}

}  // namespace

TEST_CASE("the first points contain the default, every category and different values") {
  const auto space = plane();
  const Setting hint{0.9, "fast"};
  const auto points = first_points(space, {hint, space.fallback()}, 1);
  CHECK(points.front() == space.fallback());
  CHECK(points[1] == hint);
  CHECK(points[2] == Setting{0.1, "fast"});
  CHECK(std::count(points.begin(), points.end(), space.fallback()) == 1);
  CHECK(points.size() == 6);
}

TEST_CASE("the seed moves the spread points, and each has a share of each line for itself") {
  const auto one = first_points(plane(), {}, 1);
  CHECK(first_points(plane(), {}, 1) == one);
  CHECK(first_points(plane(), {}, 2) != one);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::vector<int> shares(6);
    // Without the default, which comes first, and the other category.
    const auto points = first_points(plane(), {}, seed, 6);
    for (std::size_t i = 2; i < points.size(); ++i)
      ++shares.at(static_cast<std::size_t>(6 * std::get<double>(points[i][0])));
    CHECK(shares == std::vector<int>(6, 1));
  }
}

TEST_CASE("a search finds the best and proves it in a duel") {
  auto search = search_of({.seed = 5});
  const auto outcome = run(search, with_noise(hill, 0.02, 5));
  CHECK(outcome.ending == SearchEnding::challenger_won);
  CHECK(hill(outcome.setting) > 2.3);
  CHECK(outcome.samples <= 20);
  CHECK(outcome.turns <= 8);
  CHECK(outcome.gain == Approx(hill(outcome.setting) / hill(search.space().fallback()) - 1)
                            .margin(4 * outcome.gain_error + 0.05));
  CHECK(outcome.chance < 0.05);
}

TEST_CASE("where nothing can be won the default stays") {
  int won = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto search = search_of({.seed = seed, .most_samples = 9});
    const auto outcome = run(search, with_noise([](const Setting&) { return 1.0; }, 0.05, seed));
    won += outcome.ending == SearchEnding::challenger_won ? 1 : 0;
    if (outcome.ending != SearchEnding::challenger_won)
      CHECK(outcome.setting == search.space().fallback());
  }
  CHECK(won <= 3);  // At most 5 % are expected; 4 of 20 have a chance of 1.6 % then.
}

TEST_CASE("equal scores end the search early without a winner") {
  auto search = search_of({});
  const auto outcome = run(search, [](const Setting&) { return 7.0; });
  CHECK(outcome.ending != SearchEnding::challenger_won);
  CHECK(outcome.setting == search.space().fallback());
  CHECK(outcome.samples < 12);
}

TEST_CASE("the same seed and scores give the same settings") {
  auto one = search_of({.seed = 9});
  auto other = search_of({.seed = 9});
  run(one, with_noise(hill, 0.03, 2));
  run(other, with_noise(hill, 0.03, 2));
  CHECK(one.state() == other.state());
  auto different = search_of({.seed = 10});
  run(different, with_noise(hill, 0.03, 2));
  CHECK(one.state() != different.state());
}

TEST_CASE("a search that is cut anywhere continues as if it had not been") {
  auto whole = search_of({.seed = 4, .most_samples = 9});
  run(whole, hill);
  auto part = search_of({.seed = 4, .most_samples = 9});
  for (;;) {
    const auto proposal = part.ask();
    if (proposal.stage == SearchStage::settled) break;
    auto resumed = Search::resume(plane(), {.seed = 4, .most_samples = 9}, part.state());
    REQUIRE(resumed.has_value());
    part = std::move(resumed).value();
    REQUIRE(part.tell(proposal.setting, hill(proposal.setting), 0).has_value());
  }
  CHECK(part.state() == whole.state());
}

TEST_CASE("asking twice gives the same answer") {
  auto search = search_of({});
  for (int i = 0; i < 9; ++i) {
    const auto first = search.ask();
    CHECK(search.ask().setting == first.setting);
    REQUIRE(search.tell(first.setting, hill(first.setting), 0).has_value());
  }
}

TEST_CASE("a space of fixed values settles at once and says that there is nothing to tune") {
  auto space = SearchSpace::make(
      {{.name = "x", .range = RealRange{.least = 0, .most = 1}, .fallback = 0.1, .fixed = 0.7}});
  auto search = Search::make(std::move(space).value(), {}).value();
  CHECK(search.ask().stage == SearchStage::settled);
  CHECK(search.ask().setting == Setting{0.7});
  CHECK(search.outcome().ending == SearchEnding::nothing_to_tune);
}

TEST_CASE("a budget of one sample keeps the default and says why") {
  auto search = search_of({.most_samples = 1});
  const auto outcome = run(search, hill);
  CHECK(outcome.ending == SearchEnding::budget_too_short);
  CHECK(outcome.setting == search.space().fallback());
}

TEST_CASE("settings that fail are survived, even if all of them do") {
  auto search = search_of({.seed = 3});
  const auto outcome = run(search, [](const Setting& setting) {
    return std::get<double>(setting[0]) > 0.7 ? NAN : hill(setting);
  });
  CHECK(outcome.ending == SearchEnding::challenger_won);
  CHECK(hill(outcome.setting) > 2.25);
  auto hopeless = search_of({});
  const auto nothing = run(hopeless, [](const Setting&) { return NAN; });
  CHECK(nothing.ending == SearchEnding::default_is_best);
  CHECK(nothing.setting == hopeless.space().fallback());
}

TEST_CASE("a training that ends in the first points leaves the default") {
  auto search = search_of({});
  REQUIRE(search.tell(search.ask().setting, 1, 0.1).has_value());
  CHECK(search.outcome().ending == SearchEnding::searching);
  CHECK(search.outcome().setting == search.space().fallback());
}

TEST_CASE("bad options and settings outside the space are refused") {
  CHECK(Search::make(plane(), {.most_samples = 0}).error().message ==
        "a search needs at least 1 sample, not 0");
  CHECK(Search::make(plane(), {.least_gain = -1}).error().message ==
        "the least gain is -1, it must be 0 or above");
  CHECK(Search::make(plane(), {.hints = {{2.0, "fast"}}}).error().message ==
        "a setting to try first: 'x' is 2, allowed is 0 to 1");
  auto search = search_of({});
  CHECK_FALSE(search.tell({0.5, "red"}, 1, 0).has_value());
  CHECK(Search::resume(plane(), {}, {.measurements = {{.setting = {0.5}}}}).error().message ==
        "a measured setting: a setting of 1 values for 2 dimensions");
}
