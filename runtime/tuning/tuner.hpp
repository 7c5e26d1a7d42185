// SPDX-License-Identifier: Apache-2.0
// Tunes a job while it runs: measures samples of a training, and asks for another tuning after
// each, until the search has settled.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "runtime/engine/entry_observer.hpp"
#include "runtime/tuning/course_memory.hpp"
#include "runtime/tuning/job_tuning.hpp"
#include "runtime/tuning/step_meter.hpp"
#include "runtime/tuning/tensor_census.hpp"
#include "runtime/tuning/tuning_log.hpp"

namespace horo::runtime::tuning {

/// The knobs of the tuner.
struct TunerOptions {
  bool on = false;
  TunableValues tunable;
  int steps_per_sample = 10;
  CourseOptions course;
  WatchRules watch;
  std::string log_file;  ///< Empty: none.
  bool hierarchical = false;
  bool small_message_counts = false;  ///< The job has several hosts.
  /// Folder of the results of earlier jobs, and of searches that they have not ended; empty:
  /// nothing is kept.
  std::string memory;
  std::string topology;  ///< Part of the key of a result: hosts, ranks, backends, versions.
  TraitsOf traits;  ///< Describes the world's tensors. Called by the holder of the progress token.
};

/// Runs on one rank, the first of the first host. It measures the world; other process sets keep
/// the tuning with which they began. The holder of the progress token feeds the meter and asks the
/// engine for changes; the search runs in a thread of its own, which sleeps while a sample grows.
///
///     measuring --sample--> thinking --next tuning--> asking --the log changes it--> measuring
///         ^                    |                         ^
///         |                    +--settled: once more-----+--> resting (without a watch)
///         +---a pause later, while the watch is on-------+
class Tuner final : public EntryObserver {
 public:
  /// Null, with a line in the log, where nothing can be tuned. `ranks`: of the job.
  static std::unique_ptr<Tuner> start(const TunerOptions& options, const Tuning& start, int ranks);

  /// As stop().
  ~Tuner() override { stop(); }

  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  /// Ends the search where it is and says so, and ends the thread. Blocks: while the search thinks
  /// of its next setting, which takes milliseconds. Idempotent.
  void stop();

  void finished(std::span<const TensorId> ids, std::uint64_t bytes) override;
  void changed(const Tuning& tuning) override;
  void disturbed() override;
  bool advance(Agreement& agreement) override;

 private:
  /// A tuning that the thread wants.
  struct Wish {
    Tuning tuning;
    bool last = false;      ///< It stays; nothing is measured any more.
    double poor_score = 0;  ///< As StepMeter::set_poor_score.
  };

  Tuner(JobTuning tuning, TuningLog log, const TunerOptions& options, const Tuning& start);

  // Thread: the search's own.
  void run();
  std::optional<Sample> await_sample();
  /// False: the tuner stops.
  bool rest(Duration time);
  void take(const Sample& sample);
  std::string take_tensors();
  /// In the log, what the search has taken over from an earlier job, once it has.
  void tell_of_earlier();
  void end_search();
  void end_early();
  void wish(const Wish& wish);

  // Thread: the holder of the progress token.
  void name_tensors();

  const bool by_processor_;
  const double ticks_per_second_;

  // Thread: the search's own.
  JobTuning tuning_;
  TuningLog log_;
  CourseMemory memory_;
  bool looked_ = false;        ///< Into the memory.
  bool told_earlier_ = false;  ///< The log says whether samples of an earlier job count.

  // Thread: the holder of the progress token.
  StepMeter meter_;
  TraitsOf traits_;  ///< Empty once the tensors are named.
  TensorCensus census_;
  Tuning current_;
  bool measures_last_ = false;  ///< The last change is under way: rest after it.

  Mutex mutex_;
  std::condition_variable changed_;
  std::optional<Sample> sample_ HORO_GUARDED_BY(mutex_);
  std::string tensors_ HORO_GUARDED_BY(mutex_);  ///< Their signature; empty: not known yet.
  std::optional<Wish> wish_ HORO_GUARDED_BY(mutex_);
  bool stopping_ HORO_GUARDED_BY(mutex_) = false;
  std::atomic<bool> wishes_{false};  ///< `wish_` has a value.
  std::thread thread_;
};

}  // namespace horo::runtime::tuning
