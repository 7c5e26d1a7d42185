// SPDX-License-Identifier: Apache-2.0
#include "autotune/steady_part.hpp"

#include <cmath>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

using horo::autotune::steady_begin;

namespace {

double mean_from(const std::vector<double>& times, std::size_t first) {
  double sum = 0;
  for (std::size_t i = first; i < times.size(); ++i) sum += times[i];
  return sum / static_cast<double>(times.size() - first);
}

}  // namespace

TEST_CASE("equal times, and few of them, are steady from the first") {
  CHECK(steady_begin({}) == 0);
  CHECK(steady_begin(std::vector<double>(10, 3.0)) == 0);
  CHECK(steady_begin(std::vector<double>{9, 1, 1, 1, 1}) == 0);
}

TEST_CASE("slower times at the beginning are left out, at most half of all") {
  CHECK(steady_begin(std::vector<double>{9, 5, 1, 1, 1, 1, 1, 1}) == 2);
  CHECK(steady_begin(std::vector<double>{9, 9, 9, 1, 1, 1, 1, 1}) == 3);
  // After a longer beginning the error of the mean is large, which asks for more steps.
  CHECK(steady_begin(std::vector<double>{9, 9, 9, 9, 9, 1, 1, 1}) == 0);
  // Faster ones are no beginning that ends, and neither are slow ones later.
  CHECK(steady_begin(std::vector<double>{1, 1, 9, 9, 9, 9, 9, 9}) == 0);
  CHECK(steady_begin(std::vector<double>{1, 1, 1, 1, 9, 9, 1, 1}) == 0);
}

TEST_CASE("noise alone is seldom cut, and does not move the mean") {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(1, 0.05);
  int cut = 0;
  double off = 0;
  constexpr int kRuns = 4000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> times(12);
    for (auto& time : times) time = noise(random);
    const auto first = steady_begin(times);
    cut += first > 0 ? 1 : 0;
    off += mean_from(times, first) - 1;
  }
  CHECK(cut < kRuns / 20);
  CHECK(std::abs(off / kRuns) < 0.002);
}

TEST_CASE("the mean after slow beginnings of all lengths is that of steady steps") {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(1, 0.02);
  for (const double slow : {0.15, 0.4, 1.5}) {
    for (const double steps : {0.5, 1.0, 2.0, 3.0}) {
      CAPTURE(slow, steps);
      double all = 0, steady = 0;
      constexpr int kRuns = 400;
      for (int run = 0; run < kRuns; ++run) {
        std::vector<double> times;
        for (int i = 0; i < 20; ++i) times.push_back(noise(random) + slow * std::exp(-i / steps));
        all += mean_from(times, 0) / kRuns;
        steady += mean_from(times, steady_begin(times)) / kRuns;
      }
      CHECK(std::abs(steady - 1) < 0.02);
      CHECK(std::abs(steady - 1) <= std::abs(all - 1));
    }
  }
}
