// SPDX-License-Identifier: Apache-2.0
#include "timeline/analysis/device_work.hpp"

#include <utility>

namespace horo::timeline {

namespace {

// A trace may contain any texts, so further ones are left out.
constexpr std::size_t kMostActivities = 64;
constexpr std::size_t kMostReasons = 16;

}  // namespace

void DeviceWorkSums::operation(Interval when) {
  ++figures_.operations;
  operations_.add_first(when);
}

void DeviceWorkSums::worked(const DeviceWork& work) {
  ranks_[work.rank].add_first(work.when);
  auto& activities = figures_.activities;
  if (activities.size() >= kMostActivities && !activities.contains(work.activity)) return;
  auto& activity = activities[work.activity];
  ++activity.times;
  activity.ns += static_cast<double>(work.when.to - work.when.from);
}

void DeviceWorkSums::missing(std::string_view reason) {
  const std::string text(reason);
  if (figures_.missing.size() < kMostReasons || figures_.missing.contains(text))
    ++figures_.missing[text];
}

DeviceFigures DeviceWorkSums::finish() {
  figures_.host_ns = operations_.sums().first_ns;
  for (auto& [rank, work] : ranks_) figures_.worked_ns += work.sums().first_ns;
  if (!ranks_.empty()) figures_.worked_ns /= static_cast<double>(ranks_.size());
  return std::move(figures_);
}

}  // namespace horo::timeline
