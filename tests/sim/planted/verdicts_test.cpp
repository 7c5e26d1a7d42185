// SPDX-License-Identifier: Apache-2.0
// Tests whether the first verdict names the fault that makes a training slow, over many trainings
// that differ in everything else. HORO_PLANTED_SEEDS is the number of trainings for each fault; a
// line for each wrong verdict names its seed.
#include "planted.hpp"

#include <cstdlib>
#include <iostream>

#include <catch2/catch.hpp>

#include "timeline/analysis/verdict.hpp"

using namespace horo;
using horo::testing::Fault;

namespace {

int seeds() {
  const char* text = std::getenv("HORO_PLANTED_SEEDS");
  const int given = text != nullptr ? std::atoi(text) : 0;
  return given > 0 ? given : 10;
}

timeline::Figures figures_of(testing::PlantedJob job) {
  timeline::Analysis analysis({}, 0);
  read_planted(std::move(job), analysis);
  return analysis.finish();
}

std::string all_of(const std::vector<timeline::Verdict>& verdicts) {
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

TEST_CASE("the rank that is named as straggler is the planted one") {
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

TEST_CASE("a training without a fault gets no verdict about a fault that can be planted") {
  for (int seed = 1; seed <= seeds(); ++seed) {
    const auto verdicts = judge(figures_of(plant(Fault::none, static_cast<std::uint64_t>(seed))));
    CAPTURE(seed, all_of(verdicts));
    // The last buckets of a step cannot be overlapped, and some rank is always last.
    if (verdicts.front().kind == "exposed" || verdicts.front().kind == "turns") continue;
    CHECK(verdicts.front().weight < 0.1);
  }
}
