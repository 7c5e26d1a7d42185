// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/job_tuning.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace horo::runtime::tuning {

namespace {

// A search that begins again knows good tunings already, so it is short.
constexpr int kLaterSamples = 10;
constexpr std::size_t kLaterEven = 2;
constexpr std::size_t kLaterHints = 3;

std::string reason(WatchFinding finding, const ThroughputWatch& watch) {
  const double usual = watch.usual() * 1e-6;
  const double now = watch.now() * 1e-6;
  if (finding == WatchFinding::changed)
    return fmt::format("the steps have moved other data for long, {:.4g} MB/s instead of {:.4g}",
                       now, usual);
  return fmt::format("the throughput has been {:.4g} MB/s instead of {:.4g} for long", now, usual);
}

}  // namespace

Result<JobTuning> JobTuning::make(const Tuning& start, const TunableValues& tunable,
                                  const CourseOptions& options, const WatchRules& watch) {
  HORO_TRY(auto space, TuningSpace::make(start, tunable));
  HORO_TRY(auto course, TuningCourse::make(std::move(space), options));
  return JobTuning(std::move(course), start, tunable, options, watch);
}

TuningNews JobTuning::add(const Score& score, double seconds) {
  if (course_.settled()) return watch(score, seconds);
  TuningNews news{.row = course_.add(score), .settled = course_.settled(), .restarted = {}};
  if (!news.settled) return news;
  watch_.begin();
  const bool in_vain = course_.outcome().ending != autotune::SearchEnding::challenger_won;
  if (searches_ > 1 && in_vain) watch_.be_patient();
  return news;
}

TuningNews JobTuning::watch(const Score& score, double seconds) {
  if (!watches()) return {};
  const auto finding = watch_.add(
      {.score = score.score, .bytes_per_step = score.bytes_per_step, .seconds = seconds});
  if (finding != WatchFinding::fallen && finding != WatchFinding::changed) return {};
  auto why = reason(finding, watch_);
  if (!search_again()) {
    watch_.begin();
    return {};
  }
  return {.row = std::nullopt, .settled = false, .restarted = std::move(why)};
}

bool JobTuning::search_again() {
  const auto kept = course_.next();
  auto options = options_;
  options.warmup_samples = 0;
  options.most_samples = std::min(kLaterSamples, options_.most_samples);
  options.seed = options_.seed + searches_;
  options.base = "the setting so far";
  options.even_points = kLaterEven;
  options.hints.clear();
  if (start_ != kept) options.hints.push_back(start_);
  for (const auto& tuning : course_.runners_up(kLaterHints)) {
    if (tuning != start_ && options.hints.size() < kLaterHints) options.hints.push_back(tuning);
  }
  auto space = TuningSpace::make(kept, tunable_);
  if (!space || space->space().nothing_to_tune()) return false;
  auto course = TuningCourse::make(std::move(*space), options);
  if (!course) return false;
  course_ = std::move(*course);
  ++searches_;
  return true;
}

}  // namespace horo::runtime::tuning
