// SPDX-License-Identifier: Apache-2.0
// Few operations name a rank only where chance is unlikely. All draws have fixed seeds.
#include "timeline/analysis/chance.hpp"

#include <cmath>
#include <random>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "timeline/analysis/analysis.hpp"
#include "timeline/analysis/verdict.hpp"

using namespace horo::timeline;

namespace {

constexpr std::int64_t kMs = 1'000'000;

struct Drawn {
  int ranks = 2;
  int steps = 10;
  int tensors = 1;     ///< In a step; they wait at the same time.
  int unnamed = 0;     ///< Further operations in a step, which do not show the last rank.
  int late_rank = -1;  ///< It comes 20 ms after a time when the others come; -1: none does.
};

/// A training of steps of 100 ms. The times at which ranks come are drawn from one distribution.
Figures figures_of(const Drawn& what, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  // Not std::exponential_distribution, whose values differ between libraries.
  const auto draw = [&random] {
    const double share = (static_cast<double>(random() >> 11U) + 1) / 9007199254740993.0;
    return static_cast<std::int64_t>(-std::log(share) * 4 * kMs);
  };
  Analysis analysis({}, 0);
  for (int step = 0; step < what.steps; ++step) {
    const std::int64_t at = step * 100 * kMs;
    std::vector<Arrival> arrivals;
    for (int rank = 0; rank < what.ranks; ++rank)
      arrivals.push_back({rank, at + draw() + (rank == what.late_rank ? 20 * kMs : 0)});
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

/// The first word of the verdict about lateness, and its text.
Verdict verdict_of(const Drawn& what, std::uint64_t seed) {
  for (const auto& verdict : judge(figures_of(what, seed))) {
    if (verdict.kind == "straggler" || verdict.kind == "late_ranks") return verdict;
  }
  return {};
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
}

TEST_CASE("tensors that wait for their ranks at the same time are one occasion") {
  const auto figures = figures_of({.ranks = 3, .steps = 7, .tensors = 50, .late_rank = 1}, 1);
  CHECK(figures.with_arrivals == 350);
  CHECK(figures.occasions == 7);
}

TEST_CASE("ranks that are late by chance are named once in a hundred times at most") {
  for (const int ranks : {2, 3, 8}) {
    for (const int steps : {1, 3, 8, 20}) {
      for (const bool few : {false, true}) {
        constexpr int kSeeds = 2000;
        int named = 0;
        for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
          const Drawn drawn{.ranks = ranks, .steps = steps, .tensors = 2, .unnamed = few ? 6 : 0};
          named += verdict_of(drawn, seed).kind == "straggler" ? 1 : 0;
        }
        CAPTURE(ranks, steps, few, named);
        // At a probability of a hundredth, more than 36 of 2000 have a probability of a thousandth.
        CHECK(named <= 36);
      }
    }
  }
}

TEST_CASE("a rank that is truly late is named as soon as chance is unlikely") {
  for (const int ranks : {2, 3, 8}) {
    for (const bool few : {false, true}) {
      CAPTURE(ranks, few);
      int enough = 1;
      while (chance_of_last(static_cast<std::uint64_t>(enough), static_cast<std::uint64_t>(enough),
                            static_cast<std::uint64_t>(ranks)) >= 0.01)
        ++enough;
      int right = 0;
      for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        // A few more, because by chance another rank may be the last in one of them.
        const Drawn drawn{.ranks = ranks,
                          .steps = enough + 3,
                          .tensors = 2,
                          .unnamed = few ? 6 : 0,
                          .late_rank = 1};
        const auto verdict = verdict_of(drawn, seed);
        right += verdict.kind == "straggler" && verdict.text.starts_with("rank 1 ") ? 1 : 0;
        const Drawn fewer{.ranks = ranks,
                          .steps = enough - 1,
                          .tensors = 2,
                          .unnamed = few ? 6 : 0,
                          .late_rank = 1};
        CHECK(verdict_of(fewer, seed).kind != "straggler");
      }
      CHECK(right >= 95);
    }
  }
}

TEST_CASE("few operations that show who was last are said to be few, with the chance") {
  const auto late =
      verdict_of({.ranks = 3, .steps = 8, .tensors = 1, .unnamed = 9, .late_rank = 1}, 1);
  CHECK(late.text.find("rank 1 is probably a straggler: last in 8 of 8 operations, on average ") ==
        0);
  CHECK(late.text.find("too often for chance (p = 0.0005)") != std::string::npos);
  CHECK(late.text.find("only 8 of 80 operations show which rank that is") != std::string::npos);
  const auto once =
      verdict_of({.ranks = 3, .steps = 1, .tensors = 4, .unnamed = 9, .late_rank = 1}, 1);
  CHECK(once.kind == "late_ranks");
  CHECK(once.text.find("rank 1 was last in 4 of 4 operations") != std::string::npos);
  CHECK(once.text.find("which may be chance (p = 1)") != std::string::npos);
}
