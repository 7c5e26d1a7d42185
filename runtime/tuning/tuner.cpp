// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/tuner.hpp"

#include <pthread.h>
#include <utility>

#include "base/log.hpp"
#include "base/signals_blocked.hpp"
#include "timeline/record/ticks.hpp"

namespace horo::runtime::tuning {

namespace {

/// Steps may take microseconds; a sample of them would show little more than one time slice.
constexpr Duration kLeastSample = std::chrono::milliseconds(20);

/// A setting with a lower share of the default's score is poor.
constexpr double kPoorShare = 0.5;

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
  auto space = TuningSpace::make(start, options.tunable);
  if (space && space->space().nothing_to_tune()) {
    log::info("runtime",
              "autotuning: there is nothing to tune: fusion.threshold, cycle.time and wake.delay "
              "are set");
    return nullptr;
  }
  auto course = space ? TuningCourse::make(std::move(*space), options.course)
                      : Result<TuningCourse>(Failure(space.error()));
  if (!course) {
    log::error("runtime", "autotuning is off: {}", course.error().message);
    return nullptr;
  }
  std::unique_ptr<Tuner> tuner(new Tuner(std::move(*course), open_log(options), options, start));
  tuner->thread_ = start_quiet_thread([raw = tuner.get()] { raw->run(); });
  return tuner;
}

Tuner::Tuner(TuningCourse course, TuningLog log, const TunerOptions& options, const Tuning& start)
    : by_processor_(timeline::counts_by_processor()),
      ticks_per_second_(static_cast<double>(timeline::ticks_in(std::chrono::seconds(1)))),
      course_(std::move(course)),
      log_(std::move(log)),
      meter_({.least_steps = options.steps_per_sample,
              .least_ticks = timeline::ticks_in(kLeastSample)}),
      current_(start) {
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
  const auto sample = meter_.add(ids, bytes, timeline::ticks_now(by_processor_));
  if (!sample) return;
  {
    const MutexLock lock(mutex_);
    sample_ = sample;
  }
  changed_.notify_all();
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

void Tuner::take(const Sample& sample) {
  const auto row = course_.add({.score = sample.score * ticks_per_second_,
                                .standard_error = sample.standard_error * ticks_per_second_,
                                .steps = sample.steps});
  if (row) {
    log_.add(*row);
    log::debug("runtime", "autotuning: {} moved {:.4g} +- {:.2g} MB/s in {} steps ({})",
               describe(row->tuning), row->score.score * 1e-6, row->score.standard_error * 1e-6,
               row->score.steps, row->state);
  }
}

void Tuner::run() {
  pthread_setname_np(pthread_self(), "horo-tune");
  while (!course_.settled()) {
    const auto sample = await_sample();
    if (!sample) {
      log::info("runtime", "autotuning: {}", course_.early_verdict());
      auto row = course_.last_row();
      row.state = "ended early";
      log_.end(row, course_.outcome());
      return;
    }
    take(*sample);
    wish({.tuning = course_.next(),
          .last = course_.settled(),
          .poor_score = kPoorShare * course_.default_score() / ticks_per_second_});
  }
  log_.end(course_.last_row(), course_.outcome());
  log::info("runtime", "autotuning: {}", course_.verdict());
}

}  // namespace horo::runtime::tuning
