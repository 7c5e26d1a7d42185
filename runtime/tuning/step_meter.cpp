// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/step_meter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autotune/steady_part.hpp"

namespace horo::runtime::tuning {

namespace {

// When another tensor has come so often and the mark has not, the mark belongs to no step (it was
// broadcast once, say), and the other tensor takes its place. A tensor may come several times in a
// step, so a mark that has returned is kept for longer.
constexpr std::uint32_t kTimesWithoutMark = 3;
constexpr std::uint32_t kTimesWithoutKnownMark = 64;

// If more of the steps are long, they are no pauses.
constexpr double kMostPauses = 0.25;

}  // namespace

void StepMeter::begin() {
  state_ = State::awaits_step;
  steps_.clear();
  measured_ticks_ = 0;
}

void StepMeter::count(TensorId id) {
  if (id.index() >= seen_.size()) seen_.resize(id.index() + 1);
  auto& seen = seen_[id.index()];
  if (seen.round != round_) seen = {.round = round_, .times = 0};
  const auto limit = mark_returns_ ? kTimesWithoutKnownMark : kTimesWithoutMark;
  if (++seen.times < limit) return;
  mark_ = id;
  mark_returns_ = false;
  ++round_;
  begin();
}

bool StepMeter::ends_step(std::span<const TensorId> ids) {
  if (!mark_) {
    mark_ = ids.front();
    return true;
  }
  for (const auto id : ids) {
    if (id != *mark_) {
      count(id);
      continue;
    }
    mark_returns_ = true;
    return true;
  }
  return false;
}

std::optional<Sample> StepMeter::add(std::span<const TensorId> ids, std::uint64_t bytes,
                                     std::uint64_t ticks) {
  if (state_ == State::rests || ids.empty() || bytes == 0) return std::nullopt;
  open_.bytes += bytes;
  if (!ends_step(ids)) return std::nullopt;
  ++round_;
  auto sample = end_step(ticks);
  open_ = {.bytes = 0, .ticks = ticks};
  return sample;
}

std::optional<Sample> StepMeter::end_step(std::uint64_t ticks) {
  switch (state_) {
    case State::rests:
      break;
    case State::awaits_step:
      state_ = State::skips_step;
      break;
    case State::skips_step:
      state_ = State::measures;
      break;
    case State::measures: {
      const auto took = ticks > open_.ticks ? ticks - open_.ticks : 1;
      steps_.push_back({.bytes = open_.bytes, .ticks = took});
      measured_ticks_ += took;
      auto sample = judge();
      if (sample) state_ = State::rests;
      return sample;
    }
  }
  return std::nullopt;
}

double StepMeter::longest_step() const {
  std::vector<std::uint64_t> times;
  times.reserve(steps_.size());
  for (const auto& step : steps_) times.push_back(step.ticks);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  const auto limit = kPauseMedians * static_cast<double>(*middle);
  const auto pauses = std::count_if(times.begin(), times.end(), [limit](std::uint64_t time) {
    return static_cast<double>(time) > limit;
  });
  if (static_cast<double>(pauses) <= kMostPauses * static_cast<double>(times.size())) return limit;
  return std::numeric_limits<double>::infinity();
}

Sample StepMeter::mean_of_steps() const {
  const auto longest = longest_step();
  std::vector<Step> kept;
  std::vector<double> times;  // Per byte, because steps may move different data.
  for (const auto& step : steps_) {
    if (static_cast<double>(step.ticks) > longest) continue;
    kept.push_back(step);
    times.push_back(static_cast<double>(step.ticks) / static_cast<double>(step.bytes));
  }
  const auto settling = autotune::steady_begin(times);
  const auto counted = std::span(kept).subspan(settling);
  const auto count = static_cast<double>(counted.size());
  double bytes = 0, ticks = 0, squares = 0;
  for (const auto& step : counted) {
    bytes += static_cast<double>(step.bytes);
    ticks += static_cast<double>(step.ticks);
  }
  const auto score = bytes / ticks;
  for (const auto& step : counted) {
    const auto off = static_cast<double>(step.bytes) - score * static_cast<double>(step.ticks);
    squares += off * off;
  }
  return {.score = score,
          // The standard error of a ratio of two means.
          .standard_error = std::sqrt(squares / (count * (count - 1))) / (ticks / count),
          .steps = counted.size(),
          .pauses = steps_.size() - kept.size(),
          .settling = settling,
          .bytes_per_step = bytes / count};
}

std::optional<Sample> StepMeter::judge() const {
  const auto least = std::max<std::int64_t>(2, rules_.least_steps);
  const auto count = static_cast<std::int64_t>(steps_.size());
  if (count == kFewSteps) {
    const auto sample = mean_of_steps();
    const auto& last = steps_.back();
    const bool stays_poor =
        static_cast<double>(last.bytes) < poor_score_ * static_cast<double>(last.ticks);
    if (sample.steps > 1 && sample.score < poor_score_ && stays_poor) return sample;
  }
  // Looks at some of the steps only, because each look goes through all of them.
  if (count < least || count % std::max<std::int64_t>(1, least / 10) != 0) return std::nullopt;
  const bool last = count >= kMostTimes * least;
  if (measured_ticks_ < rules_.least_ticks && !last) return std::nullopt;
  const auto sample = mean_of_steps();
  if (last) return sample;
  const bool enough = sample.steps >= static_cast<std::size_t>(least) &&
                      sample.standard_error <= rules_.good_error * sample.score;
  return enough ? std::optional(sample) : std::nullopt;
}

}  // namespace horo::runtime::tuning
