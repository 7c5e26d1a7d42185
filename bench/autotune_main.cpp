// SPDX-License-Identifier: Apache-2.0
// Compares searches; bench/autotune starts it and explains its options. Prints one JSON object per
// line.
#include "autotune_families.hpp"
#include "autotune_rivals.hpp"
#include "autotune_surfaces.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
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
  bool development = false;
  std::vector<std::string> who = kSearchers;
  std::vector<std::string> recordings;
};

/// Regret after each sample of one run.
std::vector<double> regrets(const std::string& who, const Surface& surface, std::uint64_t seed,
                            std::size_t samples) {
  const auto searcher = make_searcher(who, surface, seed, samples);
  autotune::RandomDraws draws(seed * 7919 + 1);
  std::vector<double> result;
  double regret = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    const auto setting = searcher->ask();
    searcher->tell(setting, surface.measure(setting, draws));
    // A search thinks of its best setting for milliseconds, so only some samples are looked at.
    if ((i + 1) % 5 == 0 || i + 1 == samples || i == 0)
      regret = (surface.best - surface.truth(searcher->best())) / surface.unit;
    result.push_back(regret);
  }
  return result;
}

double quantile(std::vector<double> numbers, double share) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[static_cast<std::size_t>(
      std::lround(share * static_cast<double>(numbers.size() - 1)))];
}

void compare(const SurfaceGroup& group, const std::string& who, const Arguments& arguments) {
  std::vector<std::vector<double>> runs;
  for (std::uint64_t seed = 1; seed <= arguments.seeds; ++seed)
    runs.push_back(regrets(who, group.of(seed), seed, arguments.samples));
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
             group.name, who, arguments.seeds, curve);
}

/// Whole searches of Horo with the duel: how they end, and what they chose.
void whole(const SurfaceGroup& group, const Arguments& arguments) {
  std::vector<double> totals, gains, possible, ends;
  std::size_t won = 0, worse = 0, near = 0;
  for (std::uint64_t seed = 1; seed <= arguments.seeds; ++seed) {
    const auto& surface = group.of(seed);
    const double fallback = surface.truth(surface.space.fallback());
    possible.push_back((surface.best - fallback) / surface.unit);
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
    ends.push_back((surface.best - chosen) / surface.unit);
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
      "[{}, {}, {}], \"end\": [{:.5g}, {:.5g}]}}\n",
      group.name, arguments.seeds, share(won), share(worse), share(near), quantile(gains, 0),
      quantile(gains, 0.5), quantile(gains, 1), quantile(possible, 0.5), quantile(totals, 0),
      quantile(totals, 0.5), quantile(totals, 1), quantile(ends, 0.5), quantile(ends, 0.95));
}

/// Horovod's whole course as its documents describe it: 21 samples for each combination of its two
/// switches, each search from nothing; a sample is the median of five parts, each as long as a
/// sample of Horo; the best score wins.
void whole_rival(const SurfaceGroup& group, const Arguments& arguments) {
  std::vector<double> ends;
  std::size_t near = 0, worse = 0;
  for (std::uint64_t seed = 1; seed <= arguments.seeds; ++seed) {
    const auto& surface = group.of(seed);
    autotune::RandomDraws draws(seed * 15485863 + 5);
    std::pair<double, autotune::Setting> best{-1e300, surface.space.fallback()};
    for (std::uint64_t search = 0; search < 4; ++search) {
      const auto searcher = make_searcher("horovod's scheme", surface, 10 * seed + search, 21);
      for (int i = 0; i < 21; ++i) {
        const auto setting = searcher->ask();
        std::vector<double> parts;
        for (int part = 0; part < 5; ++part) parts.push_back(surface.measure(setting, draws));
        const double score = quantile(parts, 0.5);
        searcher->tell(setting, score);
        if (score > best.first) best = {score, setting};
      }
    }
    const double chosen = surface.truth(best.second);
    ends.push_back((surface.best - chosen) / surface.unit);
    if (ends.back() <= 0.03) ++near;
    if (chosen < surface.truth(surface.space.fallback())) ++worse;
  }
  const auto share = [&](std::size_t count) {
    return static_cast<double>(count) / static_cast<double>(arguments.seeds);
  };
  fmt::print(
      "{{\"surface\": \"{}\", \"rival\": true, \"parts\": 420, \"near\": {:.3g}, \"worse\": "
      "{:.3g}, \"end\": [{:.5g}, {:.5g}]}}\n",
      group.name, share(near), share(worse), quantile(ends, 0.5), quantile(ends, 0.95));
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

std::vector<SurfaceGroup> groups_of(const Arguments& arguments) {
  std::vector<SurfaceGroup> groups;
  if (arguments.known) {
    for (const auto& surface : known_surfaces()) groups.push_back({surface.name, {surface}});
  }
  // Members 0 to 19 served to choose the search's constants; the others judge it.
  for (auto& group : made_families(arguments.development ? 0 : 20, 20))
    groups.push_back(std::move(group));
  for (const auto& path : arguments.recordings) {
    const auto surface = recorded_surface(path);
    groups.push_back({surface.name, {surface}});
  }
  return groups;
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
    } else if (word == "--development") {
      arguments.development = true;
    } else if (word == "--who" && i + 1 < argc) {
      arguments.who = {argv[++i]};
    } else {
      arguments.recordings.push_back(word);
    }
  }
  if (arguments.seeds == 0 || arguments.samples == 0) {
    fmt::print(stderr, "usage: bench_autotune [--seeds N] [--samples N] [--no-known] [CSV...]\n");
    return 2;
  }
  const auto groups = groups_of(arguments);
  for (const auto& group : groups) {
    for (const auto& who : arguments.who) compare(group, who, arguments);
    whole(group, arguments);
    if (arguments.who.size() > 1) whole_rival(group, arguments);
    std::fflush(stdout);
  }
  if (arguments.who.size() > 1) time_proposals();
  return 0;
}
