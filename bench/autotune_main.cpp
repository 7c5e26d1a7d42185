// SPDX-License-Identifier: Apache-2.0
// Compares searches; bench/autotune starts it and explains its options. Prints one JSON object per
// line.
#include "autotune_rivals.hpp"
#include "autotune_surfaces.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "autotune/acquisition.hpp"
#include "autotune/search.hpp"

using namespace horo;
using namespace horo::bench;

namespace {

struct Arguments {
  std::uint64_t seeds = 50;
  std::size_t samples = 20;
  bool known = true;
  std::vector<std::string> recordings;
};

/// Regret after each sample of one run.
std::vector<double> regrets(const std::string& who, const Surface& surface, std::uint64_t seed,
                            std::size_t samples) {
  const auto searcher = make_searcher(who, surface, seed, samples);
  autotune::RandomDraws draws(seed * 7919 + 1);
  std::vector<double> result;
  for (std::size_t i = 0; i < samples; ++i) {
    const auto setting = searcher->ask();
    searcher->tell(setting, surface.measure(setting, draws));
    result.push_back((surface.best - surface.truth(searcher->best())) / surface.unit);
  }
  return result;
}

double quantile(std::vector<double> numbers, double share) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[static_cast<std::size_t>(
      std::lround(share * static_cast<double>(numbers.size() - 1)))];
}

void compare(const Surface& surface, const std::string& who, const Arguments& arguments) {
  std::vector<std::vector<double>> runs;
  for (std::uint64_t seed = 1; seed <= arguments.seeds; ++seed)
    runs.push_back(regrets(who, surface, seed, arguments.samples));
  std::string curve;
  for (std::size_t i = 0; i < arguments.samples; ++i) {
    std::vector<double> now;
    std::size_t near = 0;
    for (const auto& run : runs) {
      now.push_back(run[i]);
      if (run[i] <= 0.03) ++near;
    }
    curve += fmt::format("{}[{:.5g}, {:.5g}, {:.5g}, {:.3g}]", i == 0 ? "" : ", ",
                         quantile(now, 0.5), quantile(now, 0.95), quantile(now, 1),
                         static_cast<double>(near) / static_cast<double>(runs.size()));
  }
  fmt::print("{{\"surface\": \"{}\", \"who\": \"{}\", \"seeds\": {}, \"curve\": [{}]}}\n",
             surface.name, who, arguments.seeds, curve);
}

/// Whole searches of Horo with the duel: how they end, and what they chose.
void whole(const Surface& surface, const Arguments& arguments) {
  std::vector<double> totals, gains;
  std::size_t won = 0, worse = 0, near = 0;
  const double fallback = surface.truth(surface.space.fallback());
  for (std::uint64_t seed = 1; seed <= arguments.seeds; ++seed) {
    auto search = autotune::Search::make(
        surface.space, {.seed = seed, .scale = surface.scale, .most_samples = arguments.samples});
    autotune::RandomDraws draws(seed * 104729 + 3);
    for (;;) {
      const auto proposal = search->ask();
      if (proposal.stage == autotune::SearchStage::settled) break;
      const double score = surface.measure(proposal.setting, draws);
      std::ignore = search->tell(proposal.setting, score, 0).has_value();
    }
    const auto outcome = search->outcome();
    const double chosen = surface.truth(outcome.setting);
    totals.push_back(static_cast<double>(outcome.samples + outcome.turns));
    gains.push_back((chosen - fallback) / surface.unit);
    if (outcome.ending == autotune::SearchEnding::challenger_won) ++won;
    if (chosen < fallback) ++worse;
    if ((surface.best - chosen) / surface.unit <= 0.03) ++near;
  }
  const auto share = [&](std::size_t count) {
    return static_cast<double>(count) / static_cast<double>(arguments.seeds);
  };
  fmt::print(
      "{{\"surface\": \"{}\", \"whole\": true, \"seeds\": {}, \"won\": {:.3g}, \"worse\": {:.3g}, "
      "\"near\": {:.3g}, \"gain\": [{:.5g}, {:.5g}, {:.5g}], \"possible\": {:.5g}, \"samples\": "
      "[{}, {}, {}]}}\n",
      surface.name, arguments.seeds, share(won), share(worse), share(near), quantile(gains, 0),
      quantile(gains, 0.5), quantile(gains, 1), (surface.best - fallback) / surface.unit,
      quantile(totals, 0), quantile(totals, 0.5), quantile(totals, 1));
}

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// Milliseconds of CPU time to propose a point of 6 dimensions after 100 samples.
void time_proposals() {
  const auto hartmann = known_surfaces()[1];
  std::vector<double> times;
  for (std::uint64_t seed = 1; seed <= 15; ++seed) {
    auto search = autotune::Search::make(
        hartmann.space,
        {.seed = seed, .scale = hartmann.scale, .most_samples = 1000, .least_gain = 0});
    autotune::RandomDraws draws(seed);
    for (int i = 0; i < 100; ++i) {
      autotune::CubePoint point(6);
      for (auto& x : point) x = draws.uniform();
      const auto setting = hartmann.space.decode(point);
      std::ignore = search->tell(setting, hartmann.measure(setting, draws), 0).has_value();
    }
    // The remaining first points are measured, so that the model proposes.
    for (auto next = search->ask(); next.stage == autotune::SearchStage::first_points;
         next = search->ask()) {
      std::ignore =
          search->tell(next.setting, hartmann.measure(next.setting, draws), 0).has_value();
    }
    const double begin = cpu_ms();
    std::ignore = search->ask();
    times.push_back(cpu_ms() - begin);
  }
  fmt::print("{{\"proposal_ms\": [{:.3g}, {:.3g}, {:.3g}]}}\n", quantile(times, 0),
             quantile(times, 0.5), quantile(times, 1));
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--seeds" && i + 1 < argc) {
      arguments.seeds = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--samples" && i + 1 < argc) {
      arguments.samples = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--no-known") {
      arguments.known = false;
    } else {
      arguments.recordings.push_back(word);
    }
  }
  if (arguments.seeds == 0 || arguments.samples == 0) {
    fmt::print(stderr, "usage: bench_autotune [--seeds N] [--samples N] [--no-known] [CSV...]\n");
    return 2;
  }
  std::vector<Surface> surfaces;
  if (arguments.known) surfaces = known_surfaces();
  for (const auto& path : arguments.recordings) surfaces.push_back(recorded_surface(path));
  for (const auto& surface : surfaces) {
    for (const auto& who : kSearchers) compare(surface, who, arguments);
    whole(surface, arguments);
  }
  time_proposals();
  return 0;
}
