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

constexpr double kNear = 0.03;

struct Arguments {
  std::uint64_t seeds = 50;
  std::size_t samples = 20;
  bool known = true;
  bool made = true;
  bool whole = true;
  bool development = false;
  std::vector<std::string> who = kSearchers;
  std::vector<std::string> recordings;
};

/// One run: the regret of the choice after each sample, and the least regret of any sample.
struct Run {
  std::vector<double> regrets;
  double least = 1e300;
};

Run run_of(const std::string& who, const Surface& surface, std::uint64_t seed,
           std::size_t samples) {
  const auto searcher = make_searcher(who, surface, seed, samples);
  autotune::RandomDraws draws(seed * 7919 + 1);
  Run result;
  double regret = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    const auto setting = searcher->ask();
    searcher->tell(setting, surface.measure(setting, draws));
    result.least = std::min(result.least, (surface.best - surface.truth(setting)) / surface.unit);
    // A search thinks of its best setting for milliseconds, so only some samples are looked at.
    if ((i + 1) % 5 == 0 || i + 1 == samples || i == 0)
      regret = (surface.best - surface.truth(searcher->best())) / surface.unit;
    result.regrets.push_back(regret);
  }
  return result;
}

double quantile(std::vector<double> numbers, double share) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[static_cast<std::size_t>(
      std::lround(share * static_cast<double>(numbers.size() - 1)))];
}

double mean_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double one : numbers) sum += one;
  return sum / static_cast<double>(numbers.size());
}

void compare(const SurfaceGroup& group, const std::string& who, const Arguments& arguments) {
  std::vector<Run> runs;
  for (std::uint64_t seed = 1; seed <= arguments.seeds; ++seed)
    runs.push_back(run_of(who, group.of(seed), seed, arguments.samples));
  std::string curve;
  for (std::size_t i = 0; i < arguments.samples; ++i) {
    std::vector<double> now;
    std::size_t near = 0;
    for (const auto& run : runs) {
      now.push_back(run.regrets[i]);
      if (run.regrets[i] <= kNear) ++near;
    }
    curve += fmt::format("{}[{:.5g}, {:.5g}, {:.5g}, {:.3g}]", i == 0 ? "" : ", ",
                         quantile(now, 0.5), quantile(now, 0.95), quantile(now, 1),
                         static_cast<double>(near) / static_cast<double>(runs.size()));
  }
  const auto sampled =
      std::count_if(runs.begin(), runs.end(), [](const Run& run) { return run.least <= kNear; });
  fmt::print(
      "{{\"surface\": \"{}\", \"who\": \"{}\", \"seeds\": {}, \"sampled\": {:.3g}, \"curve\": "
      "[{}]}}\n",
      group.name, who, arguments.seeds,
      static_cast<double>(sampled) / static_cast<double>(runs.size()), curve);
}

/// It counts what a search costs the training: the time of its samples and turns over the time that
/// as many steps take with the default, less 1. As in jobs, a setting that is slower than the
/// default by kPoorShare is given up after few steps (runtime/tuning/tuner.cpp).
class SearchCost {
 public:
  SearchCost(const Surface& surface) : default_(surface.truth(surface.space.fallback())) {}

  void add(const autotune::Proposal& proposal, const Surface& surface, double score) {
    const bool is_default = proposal.setting == surface.space.fallback();
    if (is_default && (first_ == 0 || score < first_)) first_ = score;
    const double steps = score < kPoorShare * first_ ? kFewSteps : kStepsOfSample;
    steps_ += steps;
    times_ += steps * default_ / surface.truth(proposal.setting);
  }

  double share() const { return times_ / steps_ - 1; }

 private:
  static constexpr double kPoorShare = 0.5;
  static constexpr double kFewSteps = 3;

  double default_;
  double first_ = 0;  ///< The default's score.
  double steps_ = 0;
  double times_ = 0;  ///< In steps of the default.
};

/// Measures what the search asks for until it has settled. Returns its cost.
double run_to_the_end(autotune::Search& search, const Surface& surface,
                      autotune::RandomDraws& draws) {
  SearchCost cost(surface);
  for (;;) {
    const auto proposal = search.ask();
    if (proposal.stage == autotune::SearchStage::settled) return cost.share();
    const auto reading = surface.measure(proposal.setting, draws);
    cost.add(proposal, surface, reading.score);
    std::ignore = search.tell(proposal.setting, reading.score, reading.standard_error).has_value();
  }
}

/// Whole searches of Horo with the duel: how they end, and what they chose.
void whole(const SurfaceGroup& group, const Arguments& arguments) {
  std::vector<double> totals, gains, possible, ends, costs;
  std::size_t won = 0, worse = 0, near = 0;
  for (std::uint64_t seed = 1; seed <= arguments.seeds; ++seed) {
    const auto& surface = group.of(seed);
    const double fallback = surface.truth(surface.space.fallback());
    possible.push_back((surface.best - fallback) / surface.unit);
    auto search = autotune::Search::make(
        surface.space, {.seed = seed, .scale = surface.scale, .most_samples = arguments.samples});
    autotune::RandomDraws draws(seed * 104729 + 3);
    costs.push_back(run_to_the_end(*search, surface, draws));
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
      "[{}, {}, {}], \"end\": [{:.5g}, {:.5g}], \"cost\": [{:.5g}, {:.5g}, {:.5g}]}}\n",
      group.name, arguments.seeds, share(won), share(worse), share(near), quantile(gains, 0),
      quantile(gains, 0.5), quantile(gains, 1), quantile(possible, 0.5), quantile(totals, 0),
      quantile(totals, 0.5), quantile(totals, 1), quantile(ends, 0.5), quantile(ends, 0.95),
      quantile(costs, 0), mean_of(costs), quantile(costs, 1));
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
        for (int part = 0; part < 5; ++part) parts.push_back(surface.measure(setting, draws).score);
        const double score = quantile(parts, 0.5);
        searcher->tell(setting, {.score = score});
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
      std::ignore = search->tell(setting, hartmann.measure(setting, draws).score, 0).has_value();
    }
    // The remaining first points are measured, so that the model proposes.
    for (auto next = search->ask(); next.stage == autotune::SearchStage::first_points;
         next = search->ask()) {
      std::ignore =
          search->tell(next.setting, hartmann.measure(next.setting, draws).score, 0).has_value();
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
  if (arguments.made) {
    for (auto& group : made_families(arguments.development ? 0 : 20, 20))
      groups.push_back(std::move(group));
  }
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
    } else if (word == "--no-made") {
      arguments.made = false;
    } else if (word == "--no-whole") {
      arguments.whole = false;
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
    if (arguments.whole) whole(group, arguments);
    if (arguments.who.size() > 1) whole_rival(group, arguments);
    std::fflush(stdout);
  }
  if (arguments.who.size() > 1) time_proposals();
  return 0;
}
