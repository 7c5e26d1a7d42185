// SPDX-License-Identifier: Apache-2.0
// Samples of planted sequences of entries.
#include "runtime/tuning/step_meter.hpp"

#include <cmath>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

using horo::TensorId;
using horo::runtime::tuning::kMostTimes;
using horo::runtime::tuning::Sample;
using horo::runtime::tuning::SampleRules;
using horo::runtime::tuning::StepMeter;

namespace {

/// A training of `tensors` tensors of 1000 bytes each, which its rank finishes one after the other.
class Training {
 public:
  explicit Training(const SampleRules& rules, std::uint32_t tensors = 4)
      : meter(rules), tensors_(tensors) {}

  /// One step that takes `ticks` for each tensor.
  void step(std::uint64_t ticks) {
    for (std::uint32_t t = 0; t < tensors_; ++t) entry({t}, 1000, ticks);
  }

  void entry(const std::vector<std::uint32_t>& tensors, std::uint64_t bytes, std::uint64_t ticks) {
    std::vector<TensorId> ids;
    for (const auto t : tensors) ids.emplace_back(t);
    now_ += ticks;
    auto found = meter.add(ids, bytes, now_);
    if (!found) return;
    CHECK_FALSE(sample);
    sample = found;
  }

  void pause(std::uint64_t ticks) { now_ += ticks; }

  StepMeter meter;
  std::optional<Sample> sample;

 private:
  const std::uint32_t tensors_;
  std::uint64_t now_ = 5'000'000;
};

}  // namespace

TEST_CASE("a sample has the bytes per tick of even steps, without an error") {
  Training training({.least_steps = 10});
  training.meter.begin();
  for (int i = 0; i < 12; ++i) {
    CHECK_FALSE(training.sample);
    training.step(50);
  }
  REQUIRE(training.sample);
  CHECK(training.sample->score == Approx(20));
  CHECK(training.sample->standard_error == Approx(0).margin(1e-12));
  CHECK(training.sample->steps == 10);
  CHECK(training.meter.rests());
}

TEST_CASE("the first step after a change does not count") {
  Training training({.least_steps = 3});
  training.meter.begin();
  for (int i = 0; i < 5; ++i) training.step(10);
  REQUIRE(training.sample);
  training.sample.reset();
  training.entry({0}, 1000, 10);
  training.entry({1}, 1000, 10);
  training.meter.begin();
  training.entry({2}, 1000, 70'000);  // The rest of the old step.
  training.entry({3}, 1000, 10);
  training.step(900);
  for (int i = 0; i < 4; ++i) training.step(20);
  REQUIRE(training.sample);
  CHECK(training.sample->score == Approx(50));
  CHECK(training.sample->pauses == 0);
}

TEST_CASE("pauses are left out and counted") {
  Training training({.least_steps = 10});
  training.meter.begin();
  for (int i = 0; i < 30 && !training.sample; ++i) {
    if (i == 5 || i == 9) training.pause(100'000);
    training.step(100);
  }
  REQUIRE(training.sample);
  CHECK(training.sample->score == Approx(10));
  CHECK(training.sample->pauses == 2);
  CHECK(training.sample->steps == 10);
}

TEST_CASE("steps are no pauses when many of them are as long") {
  Training training({.least_steps = 10, .good_error = 10});
  training.meter.begin();
  for (int i = 0; i < 12; ++i) training.step(i % 3 == 0 ? 1000 : 100);
  REQUIRE(training.sample);
  CHECK(training.sample->pauses == 0);
  CHECK(training.sample->score < 4);
}

TEST_CASE("a sample grows with the noise, up to a limit, and states its error") {
  std::mt19937_64 random(7);
  for (const double noise : {0.01, 0.05, 0.3}) {
    CAPTURE(noise);
    Training training({.least_steps = 10});
    training.meter.begin();
    std::normal_distribution<double> spread(10'000, 10'000 * noise);
    while (!training.sample)
      training.step(static_cast<std::uint64_t>(std::clamp(spread(random), 2000.0, 25'000.0)));
    const auto& sample = *training.sample;
    const auto share = sample.standard_error / sample.score;
    CHECK(std::abs(sample.score - 0.1) < 4 * sample.standard_error);
    if (noise == 0.01) CHECK(sample.steps < 20);
    if (noise == 0.05) CHECK(sample.steps > 10);
    if (noise == 0.3) {
      CHECK(sample.steps + sample.pauses + sample.settling == 10 * kMostTimes);
      CHECK(share > 0.02);
    } else {
      CHECK(share <= 0.01);
    }
  }
}

TEST_CASE("a sample takes at least the least time") {
  Training training({.least_steps = 10, .least_ticks = 20 * 400});
  training.meter.begin();
  while (!training.sample) training.step(100);
  CHECK(training.sample->steps == 20);
}

TEST_CASE("a sample that is poor by far ends after few steps") {
  for (const double poor : {0.5, 2.0}) {
    CAPTURE(poor);
    Training training({.least_steps = 10});
    training.meter.set_poor_score(poor);
    training.meter.begin();
    while (!training.sample) training.step(1000);
    CHECK(training.sample->score == Approx(1));
    CHECK(training.sample->steps == (poor > 1 ? 3 : 10));
  }
}

TEST_CASE("slower steps at the beginning do not count, and as many more are measured") {
  Training training({.least_steps = 10});
  training.meter.begin();
  // A connection's window grows while it carries the first steps.
  for (const std::uint64_t ticks : {260, 260, 240, 200, 150, 120}) training.step(ticks);
  while (!training.sample) training.step(100);
  CHECK(training.sample->score == Approx(10));
  CHECK(training.sample->settling == 5);  // The end of each step has a part of the next one.
  CHECK(training.sample->steps >= 10);
}

TEST_CASE("a setting whose first steps are slow is not given up as poor") {
  Training training({.least_steps = 10});
  training.meter.set_poor_score(10);
  training.meter.begin();
  for (const std::uint64_t ticks : {260, 260, 240}) training.step(ticks);
  while (!training.sample) training.step(90);
  CHECK(training.sample->score == Approx(1000.0 / 90));
  CHECK(training.sample->steps >= 10);
}

TEST_CASE("a tensor that comes once does not mark the steps") {
  Training training({.least_steps = 5});
  training.meter.begin();
  training.entry({99}, 64, 10);
  int steps = 0;
  for (; steps < 20 && !training.sample; ++steps) training.step(100);
  REQUIRE(training.sample);
  CHECK(training.sample->score == Approx(10));
  CHECK(steps < 12);
}

TEST_CASE("a tensor that comes several times in a step does not end the step") {
  Training training({.least_steps = 5});
  training.meter.begin();
  training.step(100);
  for (int i = 0; i < 6; ++i) {
    for (int k = 0; k < 10; ++k) training.entry({50}, 100, 10);
    training.step(100);
  }
  REQUIRE(training.sample);
  CHECK(training.sample->score == Approx(5000.0 / 500));
}

TEST_CASE("the mark of the steps changes when the training does") {
  Training training({.least_steps = 5});
  training.meter.begin();
  for (int i = 0; i < 4; ++i) training.step(100);
  for (int i = 0; i < 90 && !training.sample; ++i) training.entry({40, 41}, 2000, 50);
  REQUIRE(training.sample);
  CHECK(training.sample->score == Approx(40));
}

TEST_CASE("tensors that fuse differently in each step end the same steps") {
  Training training({.least_steps = 10, .good_error = 0.2});
  training.meter.begin();
  for (int i = 0; i < 12; ++i) {
    if (i % 2 == 0) {
      training.entry({0, 1, 2, 3}, 4000, 400);
    } else {
      training.entry({3, 2}, 2000, 200);
      training.entry({1, 0}, 2000, 200);
    }
  }
  REQUIRE(training.sample);
  CHECK(training.sample->score == Approx(10).epsilon(0.1));
}

TEST_CASE("entries without bytes, and a meter that rests, give no sample") {
  Training training({.least_steps = 2});
  for (int i = 0; i < 20; ++i) training.step(10);
  CHECK_FALSE(training.sample);
  training.meter.begin();
  for (int i = 0; i < 20; ++i) training.entry({7}, 0, 10);
  training.entry({}, 0, 10);
  CHECK_FALSE(training.sample);
}
