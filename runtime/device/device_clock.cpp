// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/device_clock.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.hpp"

namespace horo::runtime {

using timeline::DevicePhase;
using timeline::NoDeviceTimes;

namespace {

/// CUDA's events have this resolution.
constexpr double kResolutionNs = 500;

}  // namespace

DeviceClock::~DeviceClock() {
  known_.reset();
  pending_.reset();
  for (auto* const event : idle_) device_.destroy_event(event);
  if (stream_ != nullptr) device_.destroy_stream(stream_);
}

Result<std::shared_ptr<void>> DeviceClock::event() {
  EventHandle event = nullptr;
  if (idle_.empty()) {
    HORO_TRY(event, device_.make_timed_event());
  } else {
    event = idle_.back();
    idle_.pop_back();
  }
  return std::shared_ptr<void>(event, [this](EventHandle idle) { idle_.push_back(idle); });
}

int DeviceClock::number_of(StreamHandle stream) {
  const auto found = std::find(streams_.begin(), streams_.end(), stream);
  const auto number = found - streams_.begin();
  if (found == streams_.end()) streams_.push_back(stream);
  return static_cast<int>(number);
}

void DeviceClock::warn(const Error& error) {
  if (std::exchange(warned_, true)) return;
  log::warn("timeline", "the trace lacks times of device {}: {}", device_.index(), error.message);
}

Result<TimedMark> DeviceClock::mark(StreamHandle stream, NoDeviceTimes& reason) {
  const auto now = host_.now();
  if (!pending_ && (!known_ || now - known_->taken >= kRenewal)) begin_reference(now);
  auto made = event();
  if (!made) {
    reason = made.error().code == Errc::unsupported ? NoDeviceTimes::unsupported
                                                    : NoDeviceTimes::not_made;
    return Failure(made.error());
  }
  TimedMark mark{.event = std::move(*made), .called = host_.now()};
  reason = NoDeviceTimes::not_recorded;
  HORO_TRY_STATUS(device_.record(mark.event.get(), stream));
  return mark;
}

// -- The reference --------------------------------------------------------------------------------

DeviceClock::Bounds DeviceClock::both(const Bounds& a, const Bounds& b) {
  return {.least = std::max(a.least, b.least), .most = std::min(a.most, b.most)};
}

DeviceClock::Bounds DeviceClock::shifted(const Bounds& bounds, double later) {
  const auto drifted = std::abs(later) * kDrift + kResolutionNs;
  return {.least = bounds.least + later - drifted, .most = bounds.most + later + drifted};
}

/// Where it fails, the events of the next bucket are the reference.
void DeviceClock::begin_reference(TimePoint now) {
  if (stream_ == nullptr) {
    const auto made = device_.make_urgent_stream();
    if (!made) return;
    stream_ = *made;
  }
  auto made = event();
  if (!made || !device_.record(made->get(), stream_)) return;
  pending_ = TimedMark{.event = std::move(*made), .called = now};
}

void DeviceClock::look_at_pending() {
  const auto done = device_.done(pending_->event.get());
  if (done && !*done) return;
  const auto mark = *std::exchange(pending_, std::nullopt);
  if (!done) return;
  const auto now = host_.now();
  adopt({.event = mark.event,
         .ran = {.least = since_beginning(mark.called), .most = since_beginning(now)},
         .taken = mark.called});
}

void DeviceClock::adopt(Reference fresh) {
  if (known_) {
    const auto passed = device_.elapsed(known_->event.get(), fresh.event.get());
    const auto narrowed = passed ? both(fresh.ran, shifted(known_->ran, *passed)) : fresh.ran;
    if (narrowed.possible()) fresh.ran = narrowed;
  }
  known_ = std::move(fresh);
}

Result<DeviceTime> DeviceClock::between(const TimedMark& from, const TimedMark& to) {
  look();
  HORO_TRY(const double measured, device_.elapsed(from.event.get(), to.event.get()));
  const auto seen = since_beginning(host_.now());
  const auto called = since_beginning(from.called);
  const double lasted = std::clamp(measured, 0.0, seen - called);
  const Bounds own{.least = called, .most = seen - lasted};
  auto ran = own;
  if (known_) {
    HORO_TRY(const double later, device_.elapsed(known_->event.get(), from.event.get()));
    ran = both(own, shifted(known_->ran, later));
    const auto narrowed = both(known_->ran, shifted(own, -later));
    if (narrowed.possible()) known_->ran = narrowed;
    // The clocks have drifted apart faster than they may: begin anew.
    if (!ran.possible() || !narrowed.possible()) known_.reset();
    if (!ran.possible()) ran = own;
  }
  if (!known_) known_ = Reference{.event = from.event, .ran = own, .taken = from.called};
  const auto begun = ran.middle();
  return DeviceTime{
      .device = device_.index(),
      .from = host_time(begun),
      .to = host_time(begun + lasted),
      .error = Duration(static_cast<Duration::rep>(std::ceil((ran.most - ran.least) / 2) + 1))};
}

Result<Duration> DeviceClock::lasted(const TimedMark& from, const TimedMark& to) {
  HORO_TRY(const double ns, device_.elapsed(from.event.get(), to.event.get()));
  return Duration(static_cast<Duration::rep>(std::max(ns, 0.0)));
}

// -- The phases of a bucket -----------------------------------------------------------------------

void PhaseTimer::give_up(NoDeviceTimes reason, const Error& error) {
  std::exchange(clock_, nullptr)->warn(error);
  phases_.clear();
  open_ = false;
  missing_ = reason;
}

std::optional<TimedMark> PhaseTimer::mark(StreamHandle stream) {
  auto reason = NoDeviceTimes::not_made;
  auto made = clock_->mark(stream, reason);
  if (made) return std::move(*made);
  give_up(reason, made.error());
  return std::nullopt;
}

void PhaseTimer::pass(DevicePhase phase, StreamHandle stream) {
  const auto now = mark(stream);
  if (!now) return;
  if (open_) phases_.back().to = *now;
  phases_.push_back({.what = phase, .stream = stream, .from = *now, .to = {}});
  open_ = true;
}

void PhaseTimer::close() {
  const auto now = mark(phases_.back().stream);
  if (!now) return;
  phases_.back().to = *now;
  open_ = false;
}

/// Phases that share their events are measured as a whole, and then divided: so none overlaps
/// another.
Status PhaseTimer::add_row(std::span<const Phase> row, DeviceTimes& to) {
  HORO_TRY(const auto whole, clock_->between(row.front().from, row.back().to));
  auto time = whole;
  for (const auto& phase : row) {
    if (&phase == &row.back()) {
      time.to = std::max(time.from, whole.to);
    } else {
      HORO_TRY(const auto lasted, clock_->lasted(phase.from, phase.to));
      time.to = std::min(time.from + lasted, whole.to);
    }
    time.phase = phase.what;
    time.stream = clock_->number_of(phase.stream);
    to.phases.push_back(time);
    time.from = time.to;
  }
  return {};
}

void PhaseTimer::add_to(DeviceTimes& to) {
  if (open_) phases_.pop_back();
  const std::span<const Phase> all(phases_);
  for (std::size_t first = 0; first < all.size();) {
    auto next = first + 1;
    while (next < all.size() && all[next].from.event == all[next - 1].to.event) ++next;
    if (const auto added = add_row(all.subspan(first, next - first), to); !added) {
      give_up(NoDeviceTimes::not_read, added.error());
      break;
    }
    first = next;
  }
  if (missing_) to.missing = missing_;
  *this = PhaseTimer();
}

}  // namespace horo::runtime
