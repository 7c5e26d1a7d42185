// SPDX-License-Identifier: Apache-2.0
// Whole jobs over planted speeds: a search, a watch, further searches, and starts from a known
// result.
#include "runtime/tuning/job_tuning.hpp"

#include <cmath>
#include <functional>
#include <random>

#include <catch2/catch.hpp>

using namespace horo::runtime::tuning;  // NOLINT(google-build-using-namespace): a test of it
using horo::autotune::SearchEnding;
using horo::runtime::Tuning;

namespace {

using Speed = std::function<double(const Tuning&)>;

double threshold_mib(const Tuning& tuning) {
  return static_cast<double>(tuning.fusion_threshold) / (1 << 20);
}

/// Best at a threshold of 2 MiB, where it is 1.5 times the default's.
double hill(const Tuning& tuning) {
  return 1e9 * (1 + 0.5 * std::exp(-std::pow(std::log2((threshold_mib(tuning) + 0.1) / 2), 2) / 8));
}

double flat(const Tuning&) {
  return 1e9;
}

/// One sample per second.
class Job {
 public:
  explicit Job(const WatchRules& watch = {}, const CourseOptions& options = {.warmup_samples = 2})
      : tuning(*JobTuning::make(Tuning{}, {}, options, watch)) {}

  TuningNews sample(const Speed& speed) {
    std::normal_distribution<double> noise(1, 0.005);
    const auto score = speed(tuning.next()) * noise(random_);
    now_ += 1;
    return tuning.add(
        {.score = score, .standard_error = 0.005 * score, .steps = 10, .bytes_per_step = 1e6},
        now_);
  }

  /// Samples until a search has settled.
  int settle(const Speed& speed) {
    int samples = 0;
    while (!sample(speed).settled) REQUIRE(++samples < 100);
    return samples + 1;
  }

  /// Samples until a search begins again; at most `most`.
  int watch(const Speed& speed, int most) {
    int samples = 0;
    while (samples < most && sample(speed).restarted.empty()) ++samples;
    return samples;
  }

  JobTuning tuning;

 private:
  std::mt19937_64 random_{3};
  double now_ = 0;
};

}  // namespace

TEST_CASE("a steady job searches once") {
  Job job;
  job.settle(hill);
  CHECK(job.tuning.course().outcome().ending == SearchEnding::challenger_won);
  const auto kept = job.tuning.next();
  CHECK(job.watch(hill, 5000) == 5000);
  CHECK(job.tuning.next() == kept);
  CHECK(job.tuning.searches() == 1);
}

TEST_CASE("a fall that lasts starts a shorter search, which begins with known tunings") {
  Job job;
  const int first = job.settle(hill);
  const auto kept = job.tuning.next();
  CHECK(job.watch(hill, 100) == 100);
  // A neighbour takes the processor: small thresholds are bad now, and the default is better.
  const auto crowded = [](const Tuning& tuning) {
    return 0.6e9 * (threshold_mib(tuning) < 16 ? 0.7 : 1);
  };
  const int until = job.watch(crowded, 1000);
  CHECK(until >= 60);
  CHECK(until < 80);
  CHECK_FALSE(job.tuning.settled());
  CHECK(job.tuning.next() == kept);
  CHECK(job.settle(crowded) < first);
  CHECK(job.tuning.searches() == 2);
  CHECK(threshold_mib(job.tuning.next()) >= 16);
  CHECK(job.tuning.course().verdict().find("faster than the setting so far") != std::string::npos);
}

TEST_CASE("after a search in vain the next one waits longer") {
  Job job;
  job.settle(flat);
  CHECK(job.watch(flat, 50) == 50);
  const auto slower = [](double share) { return [share](const Tuning&) { return share * 1e9; }; };
  const int first = job.watch(slower(0.7), 1000);
  job.settle(slower(0.7));
  CHECK(job.tuning.next() == Tuning{});
  CHECK(job.watch(slower(0.7), 50) == 50);
  CHECK(job.watch(slower(0.4), 1000) > 1.8 * first);
}

TEST_CASE("checkpoints and evaluations start no search") {
  Job job;
  job.settle(hill);
  for (int epoch = 0; epoch < 10; ++epoch) {
    CHECK(job.watch(hill, 200) == 200);
    CHECK(job.watch([](const Tuning&) { return 2e7; }, 2) == 2);    // A checkpoint.
    CHECK(job.watch([](const Tuning&) { return 4e8; }, 40) == 40);  // An evaluation.
  }
  CHECK(job.tuning.searches() == 1);
}

TEST_CASE("a fall in the warm-up or in the search starts no other search") {
  Job job({}, {.warmup_samples = 300});
  int count = 0;
  const auto falls = [&count](const Tuning&) { return ++count < 100 ? 1e9 : 0.5e9; };
  for (int i = 0; i < 300; ++i) CHECK(job.sample(falls).restarted.empty());
  job.settle(falls);
  CHECK(job.tuning.searches() == 1);
}

TEST_CASE("without a watch time nothing is watched") {
  Job job({.least_seconds = 0});
  job.settle(hill);
  CHECK_FALSE(job.tuning.watches());
  CHECK(job.watch([](const Tuning&) { return 1e8; }, 1000) == 1000);
}

TEST_CASE("a known winner is settled in three samples after the warm-up") {
  Job first;
  first.settle(hill);
  const auto known = first.tuning.course().result();
  CHECK(known.beats_default);
  for (const int warmup : {0, 2}) {
    CAPTURE(warmup);
    Job later({}, {.warmup_samples = warmup});
    later.sample(hill);
    later.tuning.start_warm(known);
    CHECK(later.settle(hill) + 1 == 3 + warmup);
    CHECK(later.tuning.next() == known.tuning);
    CHECK(later.tuning.course().confirmed());
    const auto outcome = later.tuning.course().outcome();
    CHECK(outcome.ending == SearchEnding::challenger_won);
    CHECK(outcome.gain == Approx(known.gain).margin(0.03));
    CHECK(outcome.chance < 0.001);
    CHECK(later.tuning.course().last_row().tuning == known.tuning);
    CHECK(later.tuning.course().last_row().state == "known holds");
    CHECK(later.tuning.course().verdict().find("is kept from an earlier job, where it was") !=
          std::string::npos);
    CHECK_FALSE(later.tuning.course().worth_keeping());
  }
}

TEST_CASE("that nothing beat the default is known after one sample") {
  Job first;
  first.settle(flat);
  const auto known = first.tuning.course().result();
  CHECK_FALSE(known.beats_default);
  Job later;
  later.sample(flat);
  later.tuning.start_warm(known);
  CHECK(later.settle(flat) == 2);  // The second sample of the warm-up, and the check's.
  CHECK(later.tuning.next() == Tuning{});
  CHECK(later.tuning.course().verdict().find("the default stays after 1 samples") == 0);
}

TEST_CASE("that a search with a smaller budget kept the default ends no later search") {
  for (const int budget : {2, 4}) {
    CAPTURE(budget);
    Job first({}, {.warmup_samples = 1, .most_samples = budget});
    first.settle(flat);
    const auto known = first.tuning.course().result();
    CHECK_FALSE(known.beats_default);
    CHECK(known.samples == static_cast<std::size_t>(budget));
    Job later;
    later.sample(hill);
    later.tuning.start_warm(known);
    CHECK(later.settle(hill) > 5);
    CHECK(hill(later.tuning.next()) > 1.3e9);
    Job same({}, {.warmup_samples = 1, .most_samples = budget});
    same.sample(flat);
    same.tuning.start_warm(known);
    CHECK(same.settle(flat) == 1);
  }
}

TEST_CASE("a search that could try nothing but the default has no result for other jobs") {
  Job job({}, {.warmup_samples = 0, .most_samples = 1});
  CHECK(job.settle(hill) == 1);
  CHECK(job.tuning.course().outcome().ending == SearchEnding::budget_too_short);
  CHECK_FALSE(job.tuning.course().worth_keeping());
  Job whole;
  whole.settle(hill);
  CHECK(whole.tuning.course().worth_keeping());
}

TEST_CASE("a known winner that does not win here is searched past") {
  const KnownResult known{.tuning = {.fusion_threshold = 64 << 10, .wake_delay_ns = 50'000},
                          .beats_default = true,
                          .gain = 0.4,
                          .default_score = 1e9};
  Job job;
  job.sample(hill);
  job.tuning.start_warm(known);
  CHECK(job.settle(hill) > 5);
  CHECK_FALSE(job.tuning.course().confirmed());
  CHECK(job.tuning.course().outcome().ending == SearchEnding::challenger_won);
  CHECK(hill(job.tuning.next()) > 1.3e9);
}

TEST_CASE("a known tuning outside the searched range is ignored") {
  Job job;
  job.sample(hill);
  job.tuning.start_warm({.tuning = {.fusion_threshold = 777}, .beats_default = true});
  job.sample(hill);
  CHECK(job.tuning.next() == Tuning{});
}

namespace {

/// The search of a job that ended after so many samples, its warm-up included.
EarlierSearch interrupted(const Speed& speed, int samples) {
  Job job;
  for (int i = 0; i < samples; ++i) job.sample(speed);
  const auto search = job.tuning.course().unfinished();
  REQUIRE(search);
  return *search;
}

}  // namespace

TEST_CASE("a search that its job's end interrupted goes on in the next job") {
  Job whole;
  const int all = whole.settle(hill);
  for (const int warmup : {0, 2}) {
    CAPTURE(warmup);
    const auto earlier = interrupted(hill, 12);
    CHECK(earlier.samples.size() == 10);
    Job later({}, {.warmup_samples = warmup});
    later.sample(hill);
    later.tuning.resume(earlier);
    const int left = later.settle(hill) + 1 - warmup;
    CHECK(later.tuning.course().resumed().size() == 10);
    CHECK(later.tuning.course().outcome().ending == SearchEnding::challenger_won);
    CHECK(hill(later.tuning.next()) > 1.3e9);
    // Nothing is measured twice but the default.
    CHECK(left <= all - 2 - 10 + 1 + 6);
    CHECK_FALSE(later.tuning.course().unfinished());
  }
}

TEST_CASE("the turns of an interrupted search go on as well") {
  Job first;
  while (first.tuning.course().outcome().turns < 4) first.sample(hill);
  first.sample(hill);  // The first half of a pair is measured again.
  const auto earlier = first.tuning.course().unfinished();
  REQUIRE(earlier);
  CHECK(earlier->challenger);
  CHECK(earlier->turns.size() == 4);
  Job later;
  later.sample(hill);
  later.tuning.resume(*earlier);
  CHECK(later.settle(hill) <= 2 + 2 + 12);
  CHECK(later.tuning.course().outcome().turns > 4);
  CHECK(later.tuning.course().outcome().ending == SearchEnding::challenger_won);
}

TEST_CASE("samples of a slower day count as if the machine had been as fast as now") {
  const auto earlier = interrupted([](const Tuning& tuning) { return 0.8 * hill(tuning); }, 12);
  Job later;
  for (int i = 0; i < 2; ++i) later.sample(hill);
  later.tuning.resume(earlier);
  later.sample(hill);
  const auto& rows = later.tuning.course().resumed();
  REQUIRE(rows.size() == earlier.samples.size());
  for (const auto& row : rows) CHECK(row.score.score == Approx(hill(row.tuning)).epsilon(0.04));
  CHECK(rows.front().state == "earlier job");
}

TEST_CASE("samples of a job that ran at another speed do not count") {
  const auto earlier = interrupted([](const Tuning& tuning) { return 0.5 * hill(tuning); }, 12);
  Job later;
  later.sample(hill);
  later.tuning.resume(earlier);
  CHECK(later.settle(hill) > 10);
  CHECK(later.tuning.course().resumed().empty());
  CHECK(later.tuning.course().dropped().value() == Approx(1).epsilon(0.05));
}

TEST_CASE("there is nothing to continue before a second setting is measured, or after the end") {
  Job job;
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(job.tuning.course().unfinished());
    job.sample(hill);
  }
  CHECK_FALSE(job.tuning.course().unfinished());
  job.sample(hill);
  CHECK(job.tuning.course().unfinished());
  job.settle(hill);
  CHECK_FALSE(job.tuning.course().unfinished());
}
