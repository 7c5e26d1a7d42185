// SPDX-License-Identifier: Apache-2.0
// Measures how fast a training communicates, from the log entries of one process set that this rank
// has finished. Pure: times come in, no clock is read.
//
// A training submits the same tensors in every step. The meter takes one of them as the mark of a
// step: a step ends when that tensor has been reduced again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/strong.hpp"

namespace horo::runtime::tuning {

struct SampleRules {
  std::int64_t least_steps = 10;
  std::uint64_t least_ticks = 0;  ///< A sample takes at least this long.
  /// A sample ends when the standard error is at most this share of the score, or after
  /// kMostTimes times `least_steps`.
  double good_error = 0.01;
};

/// A sample has at most so many times the least number of steps.
inline constexpr std::int64_t kMostTimes = 8;

inline constexpr std::int64_t kFewSteps = 3;

/// A step that takes more than so many medians is a pause: a checkpoint, an evaluation, a process
/// that was stopped.
inline constexpr double kPauseMedians = 3;

/// A mean over steps.
struct Sample {
  double score = 0;           ///< Bytes per tick.
  double standard_error = 0;  ///< The standard error of `score`.
  std::size_t steps = 0;      ///< Steps that count.
  std::size_t pauses = 0;     ///< Steps that were left out.
  std::size_t settling = 0;   ///< Steps that were left out at the beginning: they were slower.
  double bytes_per_step = 0;
};

/// Thread: owner.
class StepMeter {
 public:
  explicit StepMeter(const SampleRules& rules) : rules_(rules) {}

  /// Begins a sample. What comes before the next end of a step and the step after it do not count,
  /// because a part of their tensors may still move as before. Nor do slower steps after that,
  /// until the training is steady (autotune/steady_part.hpp); the sample takes as many steps more.
  void begin();

  /// From now on a sample with a lower score is poor: it ends after kFewSteps steps, because nobody
  /// needs to know precisely how slow it is. If its last step is not poor, it goes on, because its
  /// first steps may be slow. 0: none is poor.
  void set_poor_score(double bytes_per_tick) { poor_score_ = bytes_per_tick; }

  /// An entry is done at `ticks`. Returns the sample that it completes; the meter then rests until
  /// begin().
  std::optional<Sample> add(std::span<const TensorId> ids, std::uint64_t bytes,
                            std::uint64_t ticks);

  bool rests() const { return state_ == State::rests; }

 private:
  enum class State : std::uint8_t { rests, awaits_step, skips_step, measures };

  struct Step {
    std::uint64_t bytes = 0;
    std::uint64_t ticks = 0;
  };

  /// How often a tensor came since the mark came last.
  struct Seen {
    std::uint32_t round = 0;
    std::uint32_t times = 0;
  };

  bool ends_step(std::span<const TensorId> ids);
  void count(TensorId id);
  std::optional<Sample> end_step(std::uint64_t ticks);
  /// Longer steps are pauses.
  double longest_step() const;
  /// Without pauses, and without the slower steps at the beginning.
  Sample mean_of_steps() const;
  /// The sample, if it is complete.
  std::optional<Sample> judge() const;

  const SampleRules rules_;
  State state_ = State::rests;
  double poor_score_ = 0;
  std::optional<TensorId> mark_;
  bool mark_returns_ = false;  ///< The mark has come twice, so it belongs to every step.
  std::uint32_t round_ = 1;
  std::vector<Seen> seen_;  ///< By tensor.
  Step open_;               ///< The step that goes on: its bytes, and the ticks when it began.
  std::uint64_t measured_ticks_ = 0;
  std::vector<Step> steps_;
};

}  // namespace horo::runtime::tuning
