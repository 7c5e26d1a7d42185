// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/device_router.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/deadline.hpp"
#include "runtime/backends/device/by_hosts_bucket.hpp"
#include "runtime/backends/device/staged_bucket.hpp"

namespace horo::runtime {

namespace {

/// Copies that have begun end within this time, unless the device is busy or hangs. A rank that
/// takes longer than the knob `release.timeout` says is killed.
constexpr Duration kDrains = std::chrono::milliseconds(250);

}  // namespace

DeviceRouter::DeviceRouter(std::unique_ptr<Backend> host, const DeviceOptions& options,
                           SetPlace place)
    : host_(std::move(host)),
      options_(options),
      place_(std::move(place)),
      choice_(options_, place_) {
  if (options_.devices != nullptr) options_.devices->order().join(*this);
}

DeviceRouter::~DeviceRouter() {
  if (options_.devices != nullptr) options_.devices->order().leave(*this);
}

bool DeviceRouter::has_starts(const Active& active) const {
  if (active.bound != nullptr) return active.bound->has_starts();
  // A bucket that has begun has given its content away.
  if (active.bucket.like.memory != MemoryKind::device || active.ticket != 0) return false;
  // Until the bucket has its way, that may be one that is ordered.
  return active.backend == nullptr ? !active.bucket.partial : choice_.is_ordered(active.backend);
}

std::uint64_t DeviceRouter::first_start(int device) const {
  if (aborted_ || !failure_ || !choice_.may_be_ordered() || !place_.first_after) return kNone;
  if (lane_.gpu() != nullptr && lane_.gpu()->index() != device) return kNone;
  if (routes_) {
    for (const auto& active : active_) {
      if (has_starts(active)) return active.place;
    }
  }
  return place_.first_after(last_place_);
}

bool DeviceRouter::is_next(const Active& active) const {
  for (const auto& before : active_) {
    if (&before == &active) break;
    if (has_starts(before)) return false;
  }
  return !choice_.is_ordered(active.backend) ||
         options_.devices->order().may_start(active.place, active.device, *this);
}

BackendCaps DeviceRouter::caps() const {
  auto caps = host_->caps();
  caps.polls = caps.polls || choice_.connects();
  const auto devices = device_health();
  caps.device_failed = !devices && devices.error().code != Errc::peer_lost;
  for (const auto& active : active_) {
    const bool direct = active.backend != nullptr && choice_.owns(active.backend);
    caps.polls =
        caps.polls || direct || (active.bound != nullptr && active.bound->waits_for_device());
  }
  return caps;
}

void DeviceRouter::begin_routing() {
  before_ = host_->completed();
  for (auto ticket = before_ + 1; ticket <= host_->started(); ++ticket) {
    active_.start({.bucket = {}, .bound = nullptr, .backend = host_.get(), .ticket = ticket});
    ++fed_;
  }
  routed_ = fed_;
  routes_ = true;
}

Status DeviceRouter::open_devices(const Bucket& bucket) {
  int last = -1;
  for (const auto& part : bucket.parts) {
    if (part.device < 0 || part.device == last) continue;
    last = part.device;
    HORO_TRY(auto* const gpu, options_.devices->open(last));
    HORO_TRY_STATUS(lane_.use(*gpu));
  }
  return {};
}

Status DeviceRouter::start(Bucket bucket) {
  const bool on_device = bucket.like.memory == MemoryKind::device;
  if (!routes_) {
    if (!on_device) return host_->start(std::move(bucket));
    begin_routing();
  }
  Active active;
  last_place_ = std::max(last_place_, bucket.place);
  if (on_device) active.opened = open_devices(bucket);
  active.place = bucket.place;
  active.device = bucket.device;
  active.bucket = std::move(bucket);
  active_.start(std::move(active));
  const auto moved = advance();
  if (moved) return {};
  if (moved.error().code == Errc::protocol) return Failure(moved.error());
  if (failure_) failure_ = Failure(moved.error());
  return {};
}

bool DeviceRouter::is_done(const Active& active) const {
  if (active.bound != nullptr) return active.bound->done();
  return active.ticket != 0 && active.ticket <= active.backend->completed();
}

Result<bool> DeviceRouter::route(Active& active) {
  HORO_TRY(const bool chosen, choice_.advance(*host_, lane_.gpu()));
  if (!chosen) return false;
  active.backend = choice_.way_of(active.bucket);
  if (active.backend != nullptr) {
    // The other ranks use their devices now, and nobody could tell them not to wait.
    HORO_TRY_STATUS(active.opened);
    if (choice_.is_within_hosts(active.backend)) HORO_TRY_STATUS(bind_by_hosts(active));
    return true;
  }
  auto error = std::exchange(active.opened, {});
  if (error && !choice_.refused()) error = choice_.refused();
  active.bound = std::make_unique<StagedBucket>(std::exchange(active.bucket, {}), place_, lane_,
                                                std::move(error));
  return true;
}

Status DeviceRouter::bind_by_hosts(Active& active) {
  if (by_hosts_ == nullptr) {
    HORO_TRY(by_hosts_, ByHostsLane::make(*lane_.gpu(), place_));
  }
  active.bound = std::make_unique<ByHostsBucket>(std::exchange(active.bucket, {}), lane_,
                                                 *by_hosts_, *active.backend);
  return {};
}

Result<bool> DeviceRouter::feed(Active& active) {
  if (active.bound != nullptr) return active.bound->feed(*host_);
  if (active.backend == nullptr) active.backend = host_.get();
  if (!is_next(active)) return false;
  HORO_TRY_STATUS(active.backend->start(std::exchange(active.bucket, {})));
  active.ticket = active.backend->started();
  return true;
}

/// Feeds the backends with the oldest bucket that none of them has. False: that one is not ready,
/// or there is none.
Result<bool> DeviceRouter::feed_next() {
  const auto at = fed_ - active_.completed();
  if (fed_ == active_.started()) return false;
  auto& active = *(active_.begin() + static_cast<std::ptrdiff_t>(at));
  HORO_TRY(const bool all, feed(active));
  if (all) ++fed_;
  return all;
}

/// Gives ways to the buckets that have none, in order.
Result<bool> DeviceRouter::route_next() {
  bool any = false;
  while (routed_ < active_.started()) {
    auto& active = *(active_.begin() + static_cast<std::ptrdiff_t>(routed_ - active_.completed()));
    if (active.bucket.like.memory == MemoryKind::device) {
      // While the members choose, everything before has to be under way, in the log's order.
      if (!chosen_ && fed_ < routed_) return any;
      HORO_TRY(chosen_, route(active));
      if (!chosen_) return any;
    }
    ++routed_;
    any = true;
  }
  return any;
}

Result<bool> DeviceRouter::fill_bound() {
  bool any = false;
  for (auto& active : active_) {
    if (active.bound == nullptr) continue;
    if (active.bound->has_starts() && is_next(active)) active.bound->allow_starts();
    HORO_TRY(const bool filled, active.bound->fill());
    any = any || filled;
  }
  return any;
}

Result<bool> DeviceRouter::advance() {
  bool any = false;
  for (bool moved = true; moved; any = any || moved) {
    HORO_TRY(moved, route_next());
    HORO_TRY(const bool filled, fill_bound());
    moved = filled || moved;
    while (fed_ < routed_) {
      HORO_TRY(const bool fed, feed_next());
      if (!fed) break;
      moved = true;
    }
    for (auto& active : active_) {
      if (active.bound != nullptr) moved = active.bound->drain(*host_) || moved;
    }
    active_.retire([this](const Active& active) { return is_done(active); });
  }
  return any;
}

bool DeviceRouter::progress() {
  bool host_moved = host_->progress();
  if (!routes_) return host_moved;
  host_moved = choice_.progress() || host_moved;
  if (!failure_) return host_moved;
  const auto moved = advance();
  if (!moved) failure_ = Failure(moved.error());
  return active_.take_news() || host_moved || (moved && *moved);
}

Status DeviceRouter::device_health() const {
  auto status = failure_ ? choice_.health() : failure_;
  if (status || lane_.gpu() == nullptr) return status;
  return Failure(lane_.gpu()->named(status.error()));
}

Status DeviceRouter::health() const {
  HORO_TRY_STATUS(device_health());
  return host_->health();
}

void DeviceRouter::abort() {
  aborted_ = true;
  host_->abort();
  choice_.abort();
  const auto& clock = SteadyClock::instance();
  const auto deadline = Deadline::in(clock, kDrains);
  for (auto& active : active_) {
    if (active.bound == nullptr) continue;
    while (!active.bound->abandon() && !deadline.expired(clock.now())) std::this_thread::yield();
    active.bound->forget();
  }
  active_.clear();
  fed_ = routed_ = active_.started();
}

}  // namespace horo::runtime
