// SPDX-License-Identifier: Apache-2.0
// Whether the first verdict names what makes a training slow, over many that differ in all else.
// HORO_PLANTED_SEEDS: how many of each fault; each line of a wrong one names its seed.
#include "planted.hpp"

#include <cstdlib>
#include <iostream>

#include <catch2/catch.hpp>

#include "apps/timeline_view/verdict.hpp"

using namespace horo;
using horo::testing::Fault;

namespace {

int seeds() {
  const char* text = std::getenv("HORO_PLANTED_SEEDS");
  const int given = text != nullptr ? std::atoi(text) : 0;
  return given > 0 ? given : 10;
}

apps::Figures figures_of(testing::PlantedJob job) {
  apps::Analysis analysis({}, 0);
  read_planted(std::move(job), analysis);
  return analysis.finish();
}

std::string all_of(const std::vector<apps::Verdict>& verdicts) {
  std::string text;
  for (const auto& verdict : verdicts)
    text += fmt::format("\n  {:.3f} {}: {}", verdict.weight, verdict.kind, verdict.text);
  return text;
}

}  // namespace

TEST_CASE("the first verdict names the fault that was planted") {
  int right = 0;
  int all = 0;
  for (const auto fault : {Fault::straggler, Fault::slow_link, Fault::slow_packing,
                           Fault::small_buckets, Fault::exposed}) {
    int found = 0;
    for (int seed = 1; seed <= seeds(); ++seed) {
      const auto verdicts = judge(figures_of(plant(fault, static_cast<std::uint64_t>(seed))));
      ++all;
      if (verdicts.front().kind == name(fault)) {
        ++found;
      } else {
        std::cout << fmt::format("{}, seed {}:{}\n", name(fault), seed, all_of(verdicts));
      }
    }
    right += found;
    std::cout << fmt::format("{}: {} of {}\n", name(fault), found, seeds());
  }
  CAPTURE(right, all);
  CHECK(right * 100 >= all * 95);
}

TEST_CASE("a straggler that was planted is the one that is named") {
  for (int seed = 1; seed <= seeds(); ++seed) {
    auto job = plant(Fault::straggler, static_cast<std::uint64_t>(seed));
    const int culprit = job.culprit;
    std::string text;
    for (const auto& verdict : judge(figures_of(std::move(job)))) {
      if (verdict.kind == "straggler") text = verdict.text;
    }
    CAPTURE(seed, culprit, text);
    CHECK(text.find(fmt::format("rank {} on", culprit)) == 0);
  }
}

TEST_CASE("a training without a fault is blamed for none that would have been planted") {
  for (int seed = 1; seed <= seeds(); ++seed) {
    const auto verdicts = judge(figures_of(plant(Fault::none, static_cast<std::uint64_t>(seed))));
    CAPTURE(seed, all_of(verdicts));
    // The last buckets of a step have nothing left to hide behind, and somebody is always last.
    if (verdicts.front().kind == "exposed" || verdicts.front().kind == "turns") continue;
    CHECK(verdicts.front().weight < 0.1);
  }
}
