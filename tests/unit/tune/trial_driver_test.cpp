// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/trial_driver.hpp"

#include <cmath>

#include <catch2/catch.hpp>

#include "apps/tune/trials/tune_runs.hpp"
#include "tests/unit/tune/trial_spaces.hpp"

using namespace horo;
using namespace horo::apps;

namespace {

TrialDriver driver_of(const TrialRules& rules, TrialState state = {}) {
  return TrialDriver::make(algo_space().space(), rules, std::move(state)).value();
}

/// "tree" is twice as fast; the first dimension does not matter.
double score_of(const autotune::Setting& setting, std::size_t number) {
  const double noise = 0.5 * static_cast<double>(number * 7 % 5);
  return (std::get<std::string>(setting[1]) == "tree" ? 200 : 100) + noise;
}

TrialResult measured(double score, double seconds = 1) {
  return {.ending = TrialEnding::measured, .score = score, .seconds = seconds};
}

/// Runs trials until the driver stops, or `most` of them.
TrialStop run_trials(TrialDriver& driver, double seconds, std::size_t most = 1000) {
  for (std::size_t i = 0; i < most; ++i) {
    const auto trial = driver.next();
    if (trial.stop != TrialStop::none) return trial.stop;
    driver.finished(measured(score_of(trial.setting, trial.number), seconds));
  }
  return TrialStop::none;
}

}  // namespace

TEST_CASE("the default is tried first, and a better setting wins in turns") {
  auto driver = driver_of({});
  CHECK(driver.next().setting == driver.space().fallback());
  CHECK(driver.next().number == 1);
  CHECK(run_trials(driver, 1) == TrialStop::settled);
  const auto outcome = driver.outcome();
  CHECK(outcome.ending == autotune::SearchEnding::challenger_won);
  CHECK(std::get<std::string>(outcome.setting[1]) == "tree");
  CHECK(driver.state().trials.size() <= 42);
}

TEST_CASE("next() is the same until the trial is finished") {
  auto driver = driver_of({});
  const auto first = driver.next();
  CHECK(driver.next().setting == first.setting);
  driver.finished(measured(100));
  CHECK(driver.next().number == 2);
}

TEST_CASE("a budget that runs out leaves time for the turns that confirm the best") {
  auto driver = driver_of({.most_seconds = 200});
  CHECK(run_trials(driver, 10) == TrialStop::settled);
  CHECK(driver.outcome().ending == autotune::SearchEnding::challenger_won);
  CHECK(driver.state().trials.size() <= 20);
}

TEST_CASE("no trial starts that the budget has no time for") {
  auto driver = driver_of({.most_seconds = 35});
  CHECK(run_trials(driver, 10) == TrialStop::out_of_time);
  CHECK(driver.state().trials.size() == 3);
  CHECK(driver.outcome().setting == driver.space().fallback());
  const auto text = stop_text(driver, TrialStop::out_of_time, {.most_seconds = 35});
  CHECK(text.find("after 3 trials of 10 s each; about 12 take --budget 121s") != std::string::npos);
}

TEST_CASE("a budget that was too short for many trials is followed by the advice of a larger one") {
  auto driver = driver_of({.most_seconds = 85});
  REQUIRE(run_trials(driver, 10) == TrialStop::out_of_time);
  const auto text = stop_text(driver, TrialStop::out_of_time, {.most_seconds = 85});
  CHECK(text.find("after 8 trials of 10 s each; about 16 take --budget 161s") != std::string::npos);
}

TEST_CASE("a budget that ends in the first trial has measured nothing") {
  auto driver = driver_of({.most_seconds = 5});
  CHECK(driver.next().limit_seconds == 5);
  driver.finished({.ending = TrialEnding::timed_out, .seconds = 5.1});
  CHECK(driver.next().stop == TrialStop::out_of_time);
  CHECK(driver.state().trials.empty());
  CHECK(stop_text(driver, TrialStop::out_of_time, {.most_seconds = 5}).find("too short for one") !=
        std::string::npos);
}

TEST_CASE("a setting that takes four times the default's time has failed, and the search goes on") {
  auto driver = driver_of({});
  driver.finished(measured(100, 30));
  CHECK(driver.next().limit_seconds == 120);
  driver.finished(
      {.ending = TrialEnding::timed_out, .seconds = 121, .failure = "stopped after 121 s"});
  CHECK(driver.next().stop == TrialStop::none);
  REQUIRE(driver.state().trials.size() == 2);
  CHECK(std::isnan(driver.state().search.measurements.back().score));
}

TEST_CASE("the search stops after failures in a row, and only then") {
  auto driver = driver_of({.most_failures = 3});
  const TrialResult failed{.ending = TrialEnding::failed, .seconds = 1, .failure = "exit code 3"};
  driver.finished(failed);
  driver.finished(failed);
  driver.finished(measured(100));
  driver.finished(failed);
  driver.finished(failed);
  CHECK(driver.next().stop == TrialStop::none);
  driver.finished(failed);
  CHECK(driver.next().stop == TrialStop::failures);
  CHECK(stop_text(driver, TrialStop::failures, {.most_failures = 3}) ==
        "stopped after 3 failures in a row: exit code 3");
}

TEST_CASE("a failed setting is never chosen") {
  auto driver = driver_of({});
  while (driver.next().stop == TrialStop::none) {
    const auto trial = driver.next();
    if (std::get<std::string>(trial.setting[1]) == "tree") {
      driver.finished({.ending = TrialEnding::failed, .seconds = 1, .failure = "exit code 1"});
    } else {
      driver.finished(measured(100 + 0.1 * static_cast<double>(trial.number % 3)));
    }
  }
  CHECK(std::get<std::string>(driver.outcome().setting[1]) == "ring");
}

TEST_CASE("an interrupted trial says nothing, and the search can continue exactly there") {
  auto driver = driver_of({});
  run_trials(driver, 1, 5);
  const auto trial = driver.next();
  driver.finished({.ending = TrialEnding::interrupted, .seconds = 0.2});
  CHECK(driver.next().stop == TrialStop::interrupted);
  CHECK(driver.state().trials.size() == 5);

  auto resumed = driver_of({}, driver.state());
  CHECK(resumed.next().stop == TrialStop::none);
  CHECK(resumed.next().setting == trial.setting);
  CHECK(resumed.next().number == 6);
}

TEST_CASE("trials of earlier calls do not use this call's budget") {
  auto driver = driver_of({.most_seconds = 30});
  CHECK(run_trials(driver, 10) == TrialStop::out_of_time);
  auto resumed = driver_of({.most_seconds = 1000}, driver.state());
  CHECK(resumed.seconds_left() == 1000);
  CHECK(run_trials(resumed, 10) == TrialStop::settled);
}

TEST_CASE("the time that is left is known after the first trial, or from the budget") {
  auto driver = driver_of({.most_trials = 10});
  CHECK_FALSE(driver.most_seconds_left());
  driver.finished(measured(100, 2));
  CHECK(driver.most_seconds_left() == 18);
  CHECK(driver_of({.most_seconds = 60}).most_seconds_left() == 60);
}

TEST_CASE("a limit of trials is kept") {
  auto driver = driver_of({.most_trials = 4});
  CHECK(run_trials(driver, 1) == TrialStop::out_of_trials);
  CHECK(driver.state().trials.size() == 4);
}

TEST_CASE("trials become samples, and the ending keeps the gain of the turns") {
  auto driver = driver_of({});
  run_trials(driver, 1);
  const auto record = record_of_trials(driver, algo_space(), Objective::throughput);
  CHECK(record.samples.size() == driver.state().trials.size());
  CHECK(record.samples.front().values == std::vector<std::string>{"4", "ring"});
  REQUIRE(record.ending);
  CHECK(record.ending->state == kChallengerWon);
  CHECK(*record.ending->gain_percent == Approx(100).margin(5));
}

TEST_CASE("what ended an unfinished search is known from the run, or from the trials") {
  JobRun run;
  CHECK(early_stop_of(run) == EarlyStop::program_ended);
  run.end.status = launcher::ExitStatus(3 << 8);
  CHECK(early_stop_of(run) == EarlyStop::failures);
  run.end.timed_out = true;
  CHECK(early_stop_of(run) == EarlyStop::budget);
  run.end.signal = 2;
  CHECK(early_stop_of(run) == EarlyStop::user);
  CHECK(early_stop_of(TrialStop::settled) == EarlyStop::none);
  CHECK(early_stop_of(TrialStop::out_of_time) == EarlyStop::budget);
  CHECK(early_stop_of(TrialStop::out_of_trials) == EarlyStop::trials);
  CHECK(early_stop_of(TrialStop::failures) == EarlyStop::failures);
  CHECK(early_stop_of(TrialStop::interrupted) == EarlyStop::user);
}

TEST_CASE("a run counts by its sample, by its duration, or as a failure") {
  JobRun run;
  run.end.seconds = 36;
  CHECK(judge_run(run, Objective::undecided).score == 100);  // 100 runs in an hour.
  CHECK(judge_run(run, Objective::throughput).ending == TrialEnding::failed);
  run.log = TuneRecord{.samples = {{.line = 2, .values = {}, .score = 50, .standard_error = 2}}};
  CHECK(judge_run(run, Objective::undecided).score == 50);
  CHECK(judge_run(run, Objective::throughput).standard_error == 2);
  CHECK(judge_run(run, Objective::wall_time).score == 100);
  run.end.was_done = true;
  run.end.status = launcher::ExitStatus(15);  // horo tune has stopped it.
  CHECK(judge_run(run, Objective::throughput).ending == TrialEnding::measured);
  run.end.was_done = false;
  run.end.status = launcher::ExitStatus(3 << 8);
  CHECK(judge_run(run, Objective::throughput).failure == "exit code 3 after 36 s");
  run.end.signal = 2;
  CHECK(judge_run(run, Objective::throughput).ending == TrialEnding::interrupted);
}
