// SPDX-License-Identifier: Apache-2.0
// Few operations name a rank only where chance is unlikely. All draws have fixed seeds.
#include "timeline/analysis/chance.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "timeline/analysis/analysis.hpp"
#include "timeline/analysis/verdict.hpp"

using namespace horo::timeline;

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr double kChance = 0.01;  // As the verdicts say it.

struct Drawn {
  int ranks = 2;
  int steps = 10;
  int tensors = 1;     ///< In a step; they wait at the same time.
  int unnamed = 0;     ///< Further operations in a step, which do not show the last rank.
  int late_rank = -1;  ///< It comes 20 ms after a time when the others come; -1: none does.
};

/// The times at which the ranks come, step by step.
using Arrivals = std::vector<std::vector<Arrival>>;

constexpr std::int64_t kStep = 100 * kMs;

/// Drawn from one distribution for all ranks, but for the late one.
Arrivals arrivals_of(const Drawn& what, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  // Not std::exponential_distribution, whose values differ between libraries.
  const auto draw = [&random] {
    const double share = (static_cast<double>(random() >> 11U) + 1) / 9007199254740993.0;
    return static_cast<std::int64_t>(-std::log(share) * 4 * kMs);
  };
  Arrivals steps;
  for (int step = 0; step < what.steps; ++step) {
    auto& arrivals = steps.emplace_back();
    for (int rank = 0; rank < what.ranks; ++rank) {
      const auto late = rank == what.late_rank ? 20 * kMs : 0;
      arrivals.push_back({rank, step * kStep + draw() + late});
    }
  }
  return steps;
}

/// Rank 1 is last in the first `times` steps; in the others the other ranks take turns.
Arrivals planted(const Drawn& what, int times) {
  Arrivals steps;
  for (int step = 0; step < what.steps; ++step) {
    const int other = (step % (what.ranks - 1) + 2) % what.ranks;
    auto& arrivals = steps.emplace_back();
    for (int rank = 0; rank < what.ranks; ++rank) {
      const bool last = rank == (step < times ? 1 : other);
      arrivals.push_back({rank, step * kStep + (last ? 20 * kMs : rank)});
    }
  }
  return steps;
}

/// A training of steps of 100 ms.
Figures figures_of(const Drawn& what, const Arrivals& steps) {
  Analysis analysis({}, 0);
  for (const auto& arrivals : steps) {
    std::int64_t first = arrivals.front().ns;
    std::int64_t last = first;
    for (const auto& arrival : arrivals) {
      first = std::min(first, arrival.ns);
      last = std::max(last, arrival.ns);
    }
    for (int i = 0; i < what.tensors + what.unnamed; ++i) {
      ObservedOperation operation{.name = fmt::format("grad.{}", i), .kind = "ALLREDUCE"};
      const auto shift = i * kMs / 1000;
      if (i < what.tensors) operation.arrivals = arrivals;
      for (auto& arrival : operation.arrivals) arrival.ns += shift;
      operation.submitted = first + shift;
      operation.agreed = operation.begun = last + shift;
      operation.ended = operation.begun + kMs / 100;
      analysis.operation(operation);
    }
  }
  return analysis.finish();
}

Figures figures_of(const Drawn& what, std::uint64_t seed) {
  return figures_of(what, arrivals_of(what, seed));
}

/// The verdict about lateness.
Verdict verdict_of(const Figures& figures) {
  for (const auto& verdict : judge(figures)) {
    if (verdict.kind == "straggler" || verdict.kind == "late_ranks") return verdict;
  }
  return {};
}

/// The text of the verdict that names a rank; empty: no rank is named.
std::string straggler_of(const Figures& figures) {
  const auto verdict = verdict_of(figures);
  return verdict.kind == "straggler" ? verdict.text : "";
}

std::uint64_t number(int n) {
  return static_cast<std::uint64_t>(n);
}

/// On so many of the occasions one rank must be last; more than all: on any number, none is named.
int needed_to_be_named(int ranks, int occasions) {
  int needed = 1;
  while (needed <= occasions &&
         chance_of_last(number(needed), number(occasions), number(ranks)) >= kChance)
    ++needed;
  return needed;
}

/// How often the rank that was last most often was last.
int most_often_last(const Arrivals& steps, int ranks) {
  std::vector<int> times(number(ranks));
  for (const auto& arrivals : steps) {
    const auto last = std::max_element(arrivals.begin(), arrivals.end(),
                                       [](const auto& a, const auto& b) { return a.ns < b.ns; });
    ++times[number(last->rank)];
  }
  return *std::max_element(times.begin(), times.end());
}

/// The probability that none of the ranks is last on `most` occasions or more, where each is
/// equally likely to be: exact, rank by rank, without the formula under test.
double chance_that_none_reaches(int most, int occasions, int ranks) {
  // ways[k]: the probability that the ranks so far are last on k occasions, times 1 / k!.
  std::vector<double> ways(number(occasions) + 1);
  ways[0] = 1;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<double> next(ways.size());
    double term = 1;  // (1 / ranks)^k / k!
    for (std::size_t k = 0; k < number(most) && k < ways.size(); ++k) {
      if (k != 0) term /= static_cast<double>(k) * ranks;
      for (std::size_t before = 0; before + k < ways.size(); ++before)
        next[before + k] += ways[before] * term;
    }
    ways = std::move(next);
  }
  return ways.back() * std::exp(std::lgamma(occasions + 1.0));
}

}  // namespace

TEST_CASE("the chance of being last is the tail of a binomial distribution, times the ranks") {
  CHECK(chance_of_last(6, 6, 3) == Approx(3 * std::pow(1.0 / 3, 6)));
  CHECK(chance_of_last(2, 3, 2) == 1);  // 2 * (3 + 1) / 8
  CHECK(chance_of_last(9, 10, 4) == Approx(4 * (10 * 3 + 1) * std::pow(0.25, 10)));
  CHECK(chance_of_last(0, 10, 4) == 1);
  CHECK(chance_of_last(3, 3, 1) == 1);
  CHECK(chance_of_last(4, 3, 2) == 1);
  CHECK(chance_of_last(0, 0, 0) == 1);
  CHECK(chance_of_last(900'000, 1'000'000, 2) == 0);
  CHECK(chance_of_last(500'000, 1'000'000, 2) == 1);
  // Two sides of 0.5 % of a normal distribution, 2.576 deviations of 500 from the mean.
  CHECK(chance_of_last(501'288, 1'000'000, 2) == Approx(0.01).epsilon(0.01));
}

TEST_CASE("tensors that wait for their ranks at the same time are one occasion") {
  const auto figures = figures_of({.ranks = 3, .steps = 7, .tensors = 50, .late_rank = 1}, 1);
  CHECK(figures.with_arrivals == 350);
  CHECK(figures.occasions == 7);
}

TEST_CASE("among equal ranks, the rule names one by chance once in a hundred times at most") {
  for (const int ranks : {2, 3, 8, 64}) {
    for (int occasions = 1; occasions <= 40; ++occasions) {
      const auto needed = needed_to_be_named(ranks, occasions);
      CAPTURE(ranks, occasions, needed);
      CHECK(chance_that_none_reaches(needed, occasions, ranks) >= 1 - kChance);
      // The rule is no stricter than it says: with one occasion less, chance is likely.
      if (needed > 1)
        CHECK(chance_of_last(number(needed - 1), number(occasions), number(ranks)) >= kChance);
    }
  }
}

TEST_CASE("a rank is named from the number of occasions on which chance gets unlikely") {
  for (const int ranks : {2, 3, 8}) {
    for (const int steps : {8, 20}) {
      for (const bool few : {false, true}) {
        const auto needed = needed_to_be_named(ranks, steps);
        const Drawn drawn{.ranks = ranks, .steps = steps, .tensors = 2, .unnamed = few ? 6 : 0};
        CAPTURE(ranks, steps, few, needed);
        const auto named = straggler_of(figures_of(drawn, planted(drawn, needed)));
        CHECK(named.starts_with("rank 1 "));
        CHECK(straggler_of(figures_of(drawn, planted(drawn, needed - 1))) == "");
      }
    }
  }
}

TEST_CASE("a rank among equal ones is named only if it was last more often than chance allows") {
  for (const int ranks : {2, 3, 8}) {
    for (const int steps : {1, 3, 8, 20}) {
      for (const bool few : {false, true}) {
        const Drawn drawn{.ranks = ranks, .steps = steps, .tensors = 2, .unnamed = few ? 6 : 0};
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
          const auto at = arrivals_of(drawn, seed);
          const auto most = most_often_last(at, ranks);
          CAPTURE(ranks, steps, few, seed, most);
          const auto figures = figures_of(drawn, at);
          // Steps at which the last ranks came together are no occasions.
          const auto occasions = static_cast<int>(figures.occasions);
          CHECK(occasions <= steps);
          const bool named = !straggler_of(figures).empty();
          CHECK((!named || most >= needed_to_be_named(ranks, occasions)));
        }
      }
    }
  }
}

TEST_CASE("a rank that is truly late is named as soon as chance is unlikely") {
  for (const int ranks : {2, 3, 8}) {
    for (const bool few : {false, true}) {
      CAPTURE(ranks, few);
      int enough = 1;
      while (chance_of_last(number(enough), number(enough), number(ranks)) >= kChance) ++enough;
      constexpr int kSeeds = 20;
      int right = 0;
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        // A few more, because by chance another rank may be the last in one of them.
        Drawn drawn{.ranks = ranks,
                    .steps = enough + 3,
                    .tensors = 2,
                    .unnamed = few ? 6 : 0,
                    .late_rank = 1};
        right += straggler_of(figures_of(drawn, seed)).starts_with("rank 1 ") ? 1 : 0;
        drawn.steps = enough - 1;
        CHECK(straggler_of(figures_of(drawn, seed)) == "");
      }
      CHECK(right >= kSeeds - 1);
    }
  }
}

TEST_CASE("few operations that show who was last are said to be few, with the chance") {
  const auto late =
      verdict_of(figures_of({.ranks = 3, .steps = 8, .unnamed = 9, .late_rank = 1}, 1));
  CHECK(late.text.find("rank 1 is probably a straggler: last in 8 of 8 operations, on average ") ==
        0);
  CHECK(late.text.find("too often for chance (p = 0.0005)") != std::string::npos);
  CHECK(late.text.find("only 8 of 80 operations show which rank that is") != std::string::npos);
  const auto once = verdict_of(
      figures_of({.ranks = 3, .steps = 1, .tensors = 4, .unnamed = 9, .late_rank = 1}, 1));
  CHECK(once.kind == "late_ranks");
  CHECK(once.text.find("rank 1 was last in 4 of 4 operations") != std::string::npos);
  CHECK(once.text.find("which may be chance (p = 1)") != std::string::npos);
}
