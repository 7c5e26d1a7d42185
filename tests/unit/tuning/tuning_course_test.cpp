// SPDX-License-Identifier: Apache-2.0
// The course of a tuning over planted scores, and the file that it writes.
#include "runtime/tuning/tuning_course.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include <catch2/catch.hpp>

#include "runtime/tuning/tuning_log.hpp"

using namespace horo::runtime::tuning;  // NOLINT(google-build-using-namespace): a test of it
using horo::autotune::SearchEnding;
using horo::runtime::Tuning;

namespace {

TuningCourse course_of(const TunableValues& tunable, const CourseOptions& options = {}) {
  return *TuningCourse::make(*TuningSpace::make(Tuning{}, tunable), options);
}

/// Goes through the whole course; `speed` gives the true score of a tuning.
template <typename Speed>
std::vector<CourseRow> run(TuningCourse& course, Speed speed) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise(1, 0.005);
  std::vector<CourseRow> rows;
  for (int i = 0; i < 200 && !course.settled(); ++i) {
    const auto score = speed(course.next()) * noise(random);
    const auto row = course.add({.score = score, .standard_error = 0.005 * score, .steps = 10});
    if (row) rows.push_back(*row);
  }
  REQUIRE(course.settled());
  return rows;
}

std::ptrdiff_t commas(const std::string& line) {
  return std::count(line.begin(), line.end(), ',');
}

}  // namespace

TEST_CASE("only values that the user has not set change") {
  auto course = course_of({.fusion_threshold = false, .wake_delay = false});
  const auto rows = run(course, [](const Tuning& tuning) {
    CHECK(tuning.fusion_threshold == Tuning{}.fusion_threshold);
    CHECK(tuning.wake_delay_ns == Tuning{}.wake_delay_ns);
    return 1e9;
  });
  CHECK(std::any_of(rows.begin(), rows.end(),
                    [](const CourseRow& row) { return row.tuning.cycle_ns != 0; }));
}

TEST_CASE("with every value set there is nothing to tune") {
  const auto space = TuningSpace::make(
      Tuning{}, {.fusion_threshold = false, .cycle_time = false, .wake_delay = false});
  REQUIRE(space);
  CHECK(space->space().nothing_to_tune());
  CHECK(space->tuning_of({}) == Tuning{});
}

TEST_CASE("a start value outside the searched range stays as it is") {
  const auto space = TuningSpace::make({.cycle_ns = 777}, {});
  REQUIRE(space);
  CHECK(space->space().dimensions().size() == 2);
  CHECK(space->tuning_of(space->space().fallback()).cycle_ns == 777);
}

TEST_CASE("cycle times from 2.5 to 7.5 ms have more than a quarter of the searched line") {
  const auto space = TuningSpace::make({}, {.fusion_threshold = false, .wake_delay = false});
  REQUIRE(space);
  const auto at = [&space](std::uint64_t ns) {
    return space->space().encode(space->setting_of({.cycle_ns = ns}).value()).front();
  };
  CHECK(at(7'500'000) - at(2'500'000) > 0.25);
  CHECK(at(1'000'000) - at(0) < 0.5);
}

TEST_CASE("samples of the warm-up do not count") {
  auto course = course_of({}, {.warmup_samples = 2});
  for (int i = 0; i < 2; ++i) {
    CHECK(course.warms_up());
    CHECK(course.next() == Tuning{});
    CHECK_FALSE(course.settled());
    CHECK(course.early_verdict().find("warm-up") != std::string::npos);
    CHECK_FALSE(course.add({.score = 1, .standard_error = 0, .steps = 10}));
  }
  CHECK_FALSE(course.warms_up());
  CHECK(course.samples() == 0);
  CHECK(course.default_score() == 0);
  CHECK(course.next() == Tuning{});
  CHECK(course.add({.score = 1, .standard_error = 0, .steps = 10}));
  CHECK(course.samples() == 1);
  CHECK(course.default_score() == 1);
}

TEST_CASE("a setting that is faster by far is found, chosen and described") {
  auto course = course_of({}, {.warmup_samples = 0});
  const auto rows = run(course, [](const Tuning& tuning) {
    const auto threshold = static_cast<double>(tuning.fusion_threshold) / (1 << 20);
    return 1e9 * (1 + 0.5 * std::exp(-std::pow(std::log2((threshold + 0.1) / 2), 2) / 8));
  });
  const auto outcome = course.outcome();
  CHECK(outcome.ending == SearchEnding::challenger_won);
  CHECK(outcome.gain > 0.3);
  const auto last = course.last_row();
  CHECK(last.tuning == course.next());
  CHECK(last.tuning.fusion_threshold < Tuning{}.fusion_threshold / 4);
  CHECK(last.score.score > 1.3e9);
  CHECK(course.verdict().find("faster than the default") != std::string::npos);
  CHECK(rows.size() == course.samples());
}

TEST_CASE("the default stays where nothing is to be gained") {
  auto course = course_of({}, {.warmup_samples = 0});
  run(course, [](const Tuning&) { return 1e9; });
  CHECK(course.next() == Tuning{});
  CHECK(course.verdict().find("the default stays") == 0);
}

TEST_CASE("the lines of the log have Horovod's columns first, and as many values as names") {
  const CourseRow row{
      .tuning = {.fusion_threshold = 32 << 20, .cycle_ns = 1'500'000, .wake_delay_ns = 50'000},
      .score = {.score = 2.5e9, .standard_error = 1e7, .steps = 12},
      .state = "model"};
  CHECK(header_line().find("hierarchical_allreduce,hierarchical_allgather,torus_allreduce,"
                           "cache_enabled,cycle_time_ms,tensor_fusion_threshold,score,") == 0);
  CHECK(row_line(row, false) == "0,0,0,1,1.5,32,2500,bytes/us,10,12,50,64,model,,,");
  CHECK(row_line(row, true).substr(0, 8) == "1,0,1,1,");
  const auto last =
      last_line(row, false, {.turns = 8, .gain = 0.05, .gain_error = 0.01, .chance = 0.001});
  CHECK(last == "0,0,0,1,1.5,32,2500,bytes/us,10,12,50,64,model,5,1,0.1");
  CHECK(commas(header_line()) == commas(last));
  CHECK(commas(row_line(row, false)) == commas(last));
  CHECK(commas(last_line(row, false, {})) == commas(last));
}

TEST_CASE("a log that cannot be written names the file") {
  const auto log = TuningLog::open("/no/such/folder/tuning.csv", false);
  REQUIRE_FALSE(log);
  CHECK(log.error().message.find("/no/such/folder/tuning.csv") != std::string::npos);
}
