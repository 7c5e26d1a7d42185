// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/device_router.hpp"

#include <thread>
#include <utility>

#include "base/deadline.hpp"

namespace horo::runtime {

namespace {

/// Copies that have begun end within this time, unless the device is busy or hangs. A rank that
/// takes longer than the knob `release.timeout` says is killed.
constexpr Duration kDrains = std::chrono::milliseconds(250);

}  // namespace

DeviceRouter::DeviceRouter(std::unique_ptr<Backend> host, Devices& devices, SetPlace place)
    : host_(std::move(host)), devices_(devices), place_(std::move(place)) {}

BackendCaps DeviceRouter::caps() const {
  auto caps = host_->caps();
  for (const auto& active : active_)
    caps.polls = caps.polls || (active.staged != nullptr && active.staged->waits_for_device());
  return caps;
}

void DeviceRouter::begin_routing() {
  before_ = host_->completed();
  for (auto ticket = before_ + 1; ticket <= host_->started(); ++ticket) {
    active_.start({.bucket = {}, .staged = nullptr, .ticket = ticket});
    ++fed_;
  }
  routes_ = true;
}

Status DeviceRouter::open_device(const Bucket& bucket) {
  if (bucket.device < 0) return {};
  HORO_TRY(auto* const gpu, devices_.open(bucket.device));
  return lane_.use(*gpu);
}

Status DeviceRouter::start(Bucket bucket) {
  const bool on_device = bucket.like.memory == MemoryKind::device;
  if (!routes_) {
    if (!on_device) return host_->start(std::move(bucket));
    begin_routing();
  }
  Active active;
  if (on_device) {
    auto opened = open_device(bucket);
    active.staged =
        std::make_unique<StagedBucket>(std::move(bucket), place_, lane_, std::move(opened));
  } else {
    active.bucket = std::move(bucket);
  }
  active_.start(std::move(active));
  HORO_TRY_STATUS(advance());
  return {};
}

bool DeviceRouter::is_done(const Active& active) const {
  if (active.staged != nullptr) return active.staged->done();
  return active.ticket != 0 && active.ticket <= host_->completed();
}

/// Feeds the backend for host memory with the oldest bucket that it does not have. False: that one
/// is not ready, or there is none.
Result<bool> DeviceRouter::feed_next() {
  const auto at = fed_ - active_.completed();
  if (fed_ == active_.started()) return false;
  auto& active = *(active_.begin() + static_cast<std::ptrdiff_t>(at));
  if (active.staged != nullptr) {
    HORO_TRY(const bool all, active.staged->feed(*host_));
    if (!all) return false;
  } else {
    HORO_TRY_STATUS(host_->start(std::exchange(active.bucket, {})));
    active.ticket = host_->started();
  }
  ++fed_;
  return true;
}

Result<bool> DeviceRouter::advance() {
  bool any = false;
  for (bool moved = true; moved; any = any || moved) {
    moved = false;
    for (auto& active : active_) {
      if (active.staged == nullptr) continue;
      HORO_TRY(const bool filled, active.staged->fill());
      moved = filled || moved;
    }
    HORO_TRY(const bool fed, feed_next());
    moved = fed || moved;
    for (auto& active : active_) {
      if (active.staged != nullptr) moved = active.staged->drain(*host_) || moved;
    }
    active_.retire([this](const Active& active) { return is_done(active); });
  }
  return any;
}

bool DeviceRouter::progress() {
  const bool host_moved = host_->progress();
  if (!routes_) return host_moved;
  if (!failure_) return host_moved;
  const auto moved = advance();
  if (!moved) failure_ = Failure(moved.error());
  return active_.take_news() || host_moved || (moved && *moved);
}

Status DeviceRouter::health() const {
  HORO_TRY_STATUS(failure_);
  return host_->health();
}

void DeviceRouter::abort() {
  host_->abort();
  const auto& clock = SteadyClock::instance();
  const auto deadline = Deadline::in(clock, kDrains);
  for (auto& active : active_) {
    if (active.staged == nullptr) continue;
    while (!active.staged->abandon() && !deadline.expired(clock.now())) std::this_thread::yield();
    active.staged->forget();
  }
  active_.clear();
  fed_ = active_.started();
}

}  // namespace horo::runtime
