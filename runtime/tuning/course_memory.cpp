// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/course_memory.hpp"

#include <chrono>
#include <utility>

#include "base/log.hpp"

namespace horo::runtime::tuning {

namespace {

/// Since 1970.
std::int64_t now_in_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::string names_of(const TunableValues& tunable) {
  std::string names;
  if (tunable.fusion_threshold) names += " fusion.threshold";
  if (tunable.cycle_time) names += " cycle.time";
  if (tunable.wake_delay) names += " wake.delay";
  if (tunable.small_message) names += " small.message";
  return names;
}

CourseMemory::CourseMemory(const std::string& folder, std::string topology)
    : results_(folder), searches_(folder), key_{.topology = std::move(topology), .tensors = {}} {}

void CourseMemory::stop(std::string_view what, const Error& error) {
  log::warn("runtime", "autotuning: {}: {}", what, error.message);
  results_.reset();
  searches_.reset();
}

void CourseMemory::begin(std::string tensors, JobTuning& tuning) {
  if (tensors.empty()) {
    results_.reset();
    searches_.reset();
  }
  if (!results_) return;
  key_.tensors = std::move(tensors);
  if (const auto status = look_up(tuning); !status)
    stop("earlier results cannot be used", status.error());
}

Status CourseMemory::look_up(JobTuning& tuning) {
  HORO_TRY(const auto found, results_->find(key_));
  if (found) {
    log::debug("runtime", "autotuning: an earlier job found {}", describe(found->tuning));
    const bool is_checked = tuning.start_warm({.tuning = found->tuning,
                                               .beats_default = found->beats_default,
                                               .gain = found->gain,
                                               .default_score = found->default_score,
                                               .samples = found->samples});
    if (is_checked) return {};
  }
  HORO_TRY(const auto search, searches_->find(key_));
  if (!search) return {};
  has_samples_ = true;
  tuning.resume(search->search);
  return {};
}

void CourseMemory::add_sample(const JobTuning& tuning) {
  // A neighbour may be the reason for what a later search measures.
  if (!results_ || tuning.searches() > 1) return;
  const auto search = tuning.course().unfinished();
  if (!search) return;
  if (const auto kept = put_samples(tuning.course(), *search); !kept)
    stop("the samples are not kept", kept.error());
}

Status CourseMemory::put_samples(const TuningCourse& course, const EarlierSearch& search) {
  if (course.refuted() && !has_samples_) {
    // The next job would check that result again, and not go on with this search.
    const auto forgotten =
        results_->forget([this](const StoredResult& one) { return one.key == key_; });
    if (!forgotten) return Failure(forgotten.error());
  }
  has_samples_ = true;
  return searches_->remember({.key = key_, .search = search, .time = now_in_seconds()});
}

void CourseMemory::end_search(const JobTuning& tuning) {
  if (!results_ || tuning.searches() > 1) return;
  if (const auto kept = put_result(tuning.course()); !kept)
    return stop("the result is not kept", kept.error());
  if (!std::exchange(has_samples_, false)) return;
  if (const auto status = searches_->forget(key_); !status)
    stop("the samples of the search are still kept", status.error());
}

Status CourseMemory::put_result(const TuningCourse& course) {
  if (!course.worth_keeping()) return {};
  const auto result = course.result();
  return results_->remember({.key = key_,
                             .tuning = result.tuning,
                             .beats_default = result.beats_default,
                             .gain = result.gain,
                             .gain_error = result.beats_default ? course.outcome().gain_error : 0,
                             .default_score = result.default_score,
                             .samples = result.samples,
                             .time = now_in_seconds()});
}

}  // namespace horo::runtime::tuning
