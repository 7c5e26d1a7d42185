// SPDX-License-Identifier: Apache-2.0
// The tuning of a job from its first sample to its last: a search, then a watch over the
// throughput, and a cheap search from what is known whenever the throughput has fallen for long. No
// clock and no thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "runtime/tuning/throughput_watch.hpp"
#include "runtime/tuning/tuning_course.hpp"

namespace horo::runtime::tuning {

/// The consequences of a sample.
struct TuningNews {
  std::optional<CourseRow> row;  ///< The sample, if it belongs to a search.
  bool settled = false;          ///< A search has ended with it.
  std::string restarted;         ///< Why a search begins again; empty: none does.
};

///     warm-up --> check --holds--> watch <--settled-- search
///        |          +--does not hold----------------> search
///        +---------------nothing known--------------> search
///                                  watch --fallen---> search
///
/// Thread: owner.
class JobTuning {
 public:
  /// `watch.least_seconds` 0: nothing is watched. Fails: invalid_argument.
  static Result<JobTuning> make(const Tuning& start, const TunableValues& tunable,
                                const CourseOptions& options, const WatchRules& watch);

  /// As TuningCourse::start_warm, of the first search.
  bool start_warm(const KnownResult& known) { return course_.start_warm(known); }

  /// As TuningCourse::resume, of the first search.
  void resume(const EarlierSearch& earlier) { course_.resume(earlier); }

  /// The tuning to measure now, or to keep.
  Tuning next() { return course_.next(); }

  /// Takes the score of next(). `seconds`: the end of the sample, on any clock.
  TuningNews add(const Score& score, double seconds);

  /// No search goes on: the tuning stays until the watch finds something.
  bool settled() { return course_.settled(); }

  bool watches() const { return rules_.least_seconds > 0; }

  /// The search that goes on, or was the last one.
  const TuningCourse& course() const { return course_; }

  /// Searches so far, the first one included.
  std::size_t searches() const { return searches_; }

 private:
  JobTuning(TuningCourse course, const Tuning& start, const TunableValues& tunable,
            const CourseOptions& options, const WatchRules& watch)
      : start_(start),
        tunable_(tunable),
        options_(options),
        rules_(watch),
        course_(std::move(course)),
        watch_(watch) {}

  TuningNews watch(const Score& score, double seconds);
  /// False: the space cannot be searched again.
  bool search_again();

  const Tuning start_;
  const TunableValues tunable_;
  const CourseOptions options_;
  const WatchRules rules_;
  TuningCourse course_;
  ThroughputWatch watch_;
  std::size_t searches_ = 1;
};

}  // namespace horo::runtime::tuning
