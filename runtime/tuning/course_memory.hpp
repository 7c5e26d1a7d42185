// SPDX-License-Identifier: Apache-2.0
// What a job's first search has from earlier jobs, and leaves to later ones.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/tuning/job_tuning.hpp"
#include "runtime/tuning/memory/tuning_store.hpp"
#include "runtime/tuning/memory/unfinished_store.hpp"

namespace horo::runtime::tuning {

/// Owns the files and the job's key in them. When they cannot be used, it warns, and keeps nothing
/// from then on. Thread: owner. Blocks: on files.
class CourseMemory {
 public:
  /// Keeps nothing.
  CourseMemory() = default;

  /// `topology`: that part of the key.
  CourseMemory(const std::string& folder, std::string topology);

  /// Gives the search what is known. `tensors`: the other part of the key; empty: nothing is kept.
  /// Before the second sample of the search.
  void begin(std::string tensors, JobTuning& tuning);

  /// The search goes on after another sample.
  void add_sample(const JobTuning& tuning);

  /// The search has ended.
  void end_search(const JobTuning& tuning);

 private:
  Status look_up(JobTuning& tuning);
  Status put_samples(const TuningCourse& course, const EarlierSearch& search);
  Status put_result(const TuningCourse& course);
  void stop(std::string_view what, const Error& error);

  std::optional<TuningStore> results_;
  std::optional<UnfinishedStore> searches_;
  JobKey key_;
  bool has_samples_ = false;  ///< `searches_` has this search.
};

/// The values that may change, as a part of the topology.
std::string names_of(const TunableValues& tunable);

}  // namespace horo::runtime::tuning
