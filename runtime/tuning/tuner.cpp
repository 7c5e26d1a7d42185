// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/tuner.hpp"

#include <pthread.h>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/signals_blocked.hpp"
#include "timeline/record/ticks.hpp"

namespace horo::runtime::tuning {

namespace {

/// Steps may take microseconds; a sample of them would show little more than one time slice.
constexpr Duration kLeastSample = std::chrono::milliseconds(20);

/// A setting with a lower share of the default's score is poor.
constexpr double kPoorShare = 0.5;

/// Between two looks of the watch.
constexpr Duration kBetweenLooks = std::chrono::seconds(1);

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

TuningLog open_log(const TunerOptions& options) {
  if (options.log_file.empty()) return {};
  auto log = TuningLog::open(options.log_file, options.hierarchical);
  if (log) return std::move(*log);
  log::warn("runtime", "autotuning: there will be no log: {}", log.error().message);
  return {};
}

}  // namespace

std::unique_ptr<Tuner> Tuner::start(const TunerOptions& options, const Tuning& start, int ranks) {
  if (ranks == 1) {
    log::info("runtime", "autotuning: there is nothing to tune: the job has one rank");
    return nullptr;
  }
  const auto space = TuningSpace::make(start, options.tunable);
  if (space && space->space().nothing_to_tune()) {
    log::info("runtime", "autotuning: there is nothing to tune: {} are set",
              options.small_message_counts
                  ? "fusion.threshold, cycle.time, wake.delay and small.message"
                  : "fusion.threshold, cycle.time and wake.delay");
    return nullptr;
  }
  auto tuning = JobTuning::make(start, options.tunable, options.course, options.watch);
  if (!tuning) {
    log::error("runtime", "autotuning is off: {}", tuning.error().message);
    return nullptr;
  }
  std::unique_ptr<Tuner> tuner(new Tuner(std::move(*tuning), open_log(options), options, start));
  tuner->thread_ = start_quiet_thread([raw = tuner.get()] { raw->run(); });
  return tuner;
}

Tuner::Tuner(JobTuning tuning, TuningLog log, const TunerOptions& options, const Tuning& start)
    : by_processor_(timeline::counts_by_processor()),
      ticks_per_second_(static_cast<double>(timeline::ticks_in(std::chrono::seconds(1)))),
      tuning_(std::move(tuning)),
      log_(std::move(log)),
      meter_({.least_steps = options.steps_per_sample,
              .least_ticks = timeline::ticks_in(kLeastSample)}),
      current_(start) {
  if (!options.memory.empty() && options.traits) {
    memory_ = CourseMemory(options.memory, fmt::format("{}; from {}; tuned:{}", options.topology,
                                                       describe(start), names_of(options.tunable)));
    traits_ = options.traits;
  }
  meter_.begin();
}

void Tuner::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Tuner::finished(std::span<const TensorId> ids, std::uint64_t bytes) {
  if (meter_.rests()) return;
  if (traits_) census_.count(ids);
  const auto sample = meter_.add(ids, bytes, timeline::ticks_now(by_processor_));
  if (!sample) return;
  if (traits_) name_tensors();
  {
    const MutexLock lock(mutex_);
    sample_ = sample;
  }
  changed_.notify_all();
}

void Tuner::name_tensors() {
  auto signature = census_.signature(std::exchange(traits_, nullptr));
  census_ = {};
  const MutexLock lock(mutex_);
  tensors_ = std::move(signature);
}

void Tuner::changed(const Tuning& tuning) {
  current_ = tuning;
  if (!measures_last_) meter_.begin();
}

void Tuner::disturbed() {
  if (!meter_.rests()) meter_.begin();
}

bool Tuner::advance(Agreement& agreement) {
  if (!wishes_.load(std::memory_order_relaxed)) return false;
  const MutexLock lock(mutex_);
  if (!wish_) return false;
  const bool changes = wish_->tuning != current_;
  if (changes && !agreement.change_tuning(wish_->tuning)) return false;
  measures_last_ = wish_->last;
  meter_.set_poor_score(wish_->poor_score);
  if (!changes && !measures_last_) meter_.begin();
  wish_.reset();
  wishes_.store(false, std::memory_order_relaxed);
  return changes;
}

void Tuner::wish(const Wish& wish) {
  const MutexLock lock(mutex_);
  wish_ = wish;
  wishes_.store(true, std::memory_order_relaxed);
}

std::optional<Sample> Tuner::await_sample() {
  MutexLock lock(mutex_);
  while (!stopping_ && !sample_) lock.wait(changed_);
  if (stopping_) return std::nullopt;
  return std::exchange(sample_, std::nullopt);
}

bool Tuner::rest(Duration time) {
  const auto end = std::chrono::steady_clock::now() + time;
  MutexLock lock(mutex_);
  while (!stopping_ && std::chrono::steady_clock::now() < end) lock.wait_until(changed_, end);
  return !stopping_;
}

std::string Tuner::take_tensors() {
  const MutexLock lock(mutex_);
  return std::exchange(tensors_, {});
}

void Tuner::tell_of_earlier() {
  const auto& course = tuning_.course();
  if (told_earlier_ || (course.resumed().empty() && !course.dropped())) return;
  told_earlier_ = true;
  if (course.dropped()) {
    log::info("runtime",
              "autotuning: the samples of an earlier job, whose search did not end, do not count: "
              "the default is {:+.0f} % faster now",
              100 * *course.dropped());
    return;
  }
  log::info("runtime",
            "autotuning: goes on with the search of an earlier job, which had {} samples",
            course.resumed().size());
  for (const auto& row : course.resumed()) log_.add(row);
}

void Tuner::take(const Sample& sample) {
  const auto news = tuning_.add({.score = sample.score * ticks_per_second_,
                                 .standard_error = sample.standard_error * ticks_per_second_,
                                 .steps = sample.steps,
                                 .bytes_per_step = sample.bytes_per_step},
                                seconds_now());
  if (!std::exchange(looked_, true)) memory_.begin(take_tensors(), tuning_);
  if (!news.restarted.empty())
    log::info("runtime", "autotuning: a new search begins: {}", news.restarted);
  if (const auto& row = news.row) {
    log_.add(*row);
    log::debug("runtime", "autotuning: {} moved {:.4g} +- {:.2g} MB/s in {} steps ({})",
               describe(row->tuning), row->score.score * 1e-6, row->score.standard_error * 1e-6,
               row->score.steps, row->state);
  }
  tell_of_earlier();
  if (news.settled) {
    end_search();
  } else {
    memory_.add_sample(tuning_);
  }
}

void Tuner::end_search() {
  const auto& course = tuning_.course();
  // First, because whoever reads the log's last line may end the job.
  memory_.end_search(tuning_);
  log_.end(course.last_row(), course.outcome());
  log::info("runtime", "autotuning: {}", course.verdict());
}

void Tuner::end_early() {
  if (tuning_.settled()) return;
  const auto& course = tuning_.course();
  log_.end(course.early_row(), course.outcome());
  log::info("runtime", "autotuning: {}", course.early_verdict());
}

void Tuner::run() {
  pthread_setname_np(pthread_self(), "horo-tune");
  for (;;) {
    const auto sample = await_sample();
    if (!sample) return end_early();
    const bool watched = tuning_.settled();
    take(*sample);
    const bool settled = tuning_.settled();
    if (watched && settled && !rest(kBetweenLooks)) return;
    const bool last = settled && !tuning_.watches();
    wish({.tuning = tuning_.next(),
          .last = last,
          .poor_score = kPoorShare * tuning_.course().default_score() / ticks_per_second_});
    if (last) return;
  }
}

}  // namespace horo::runtime::tuning
