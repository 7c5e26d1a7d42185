// SPDX-License-Identifier: Apache-2.0
// The backend of a set that may have tensors in device memory. Buckets in host memory go to the
// set's backend for host memory; those in device memory take the way that the members choose
// (DeviceChoice), or go through host memory, wholly (StagedBucket) or between hosts only
// (ByHostsBucket).
#pragma once

#include <memory>

#include "runtime/backends/device/by_hosts_lane.hpp"
#include "runtime/backends/device/device_choice.hpp"
#include "runtime/backends/device/host_bound.hpp"
#include "runtime/backends/device/staging/staging_lane.hpp"
#include "runtime/backends/hierarchical/bucket_queue.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/device/open_device.hpp"

namespace horo::runtime {

/// Owns the order of buckets in both kinds of memory: the backend for host memory gets everything
/// in the order of the log. Until the first bucket in device memory it only passes calls on.
/// Thread: the holder of the progress token.
class DeviceRouter final : public Backend, private OrderedStarts {
 public:
  /// `options` outlives this.
  DeviceRouter(std::unique_ptr<Backend> host, const DeviceOptions& options, SetPlace place);
  ~DeviceRouter() override;
  DeviceRouter(const DeviceRouter&) = delete;
  DeviceRouter& operator=(const DeviceRouter&) = delete;

  BackendCaps caps() const override;
  Status start(Bucket bucket) override;
  bool progress() override;

  std::uint64_t completed() const override {
    return routes_ ? before_ + active_.completed() : host_->completed();
  }

  std::uint64_t started() const override {
    return routes_ ? before_ + active_.started() : host_->started();
  }

  CopyTimes copied() const override { return host_->copied(); }

  Status health() const override;
  void abort() override;

 private:
  struct Active {
    Bucket bucket;                     ///< Until it is fed, or has its form in `bound`.
    std::unique_ptr<HostBound> bound;  ///< It goes through host memory.
    Backend* backend = nullptr;        ///< Its way, unless it is staged.
    Status opened;                     ///< The bucket's device is there.
    std::uint64_t ticket = 0;          ///< The backend has given it; 0: not yet.
    std::uint64_t place = 0;           ///< The bucket's.
    int device = -1;                   ///< The bucket's.
  };

  std::uint64_t first_start(int device) const override;
  /// Tells of this rank's device, and of the ways that use it.
  Status device_health() const;
  /// The operations of other sets that come before the bucket have started.
  bool is_next(const Active& active) const;
  /// It has operations to start that wait for other ranks on the device.
  bool has_starts(const Active& active) const;
  void begin_routing();
  Status open_devices(const Bucket& bucket);
  /// Gives a bucket in device memory its way; false: the members are choosing. Fails: as
  /// Backend::start.
  Result<bool> route(Active& active);
  Status bind_by_hosts(Active& active);
  /// Moves what goes through host memory.
  Result<bool> fill_bound();
  Result<bool> feed(Active& active);
  Result<bool> feed_next();
  Result<bool> route_next();
  Result<bool> advance();
  bool is_done(const Active& active) const;

  const std::unique_ptr<Backend> host_;
  const DeviceOptions& options_;
  const SetPlace place_;
  StagingLane lane_;
  std::unique_ptr<ByHostsLane> by_hosts_;  ///< Null: no bucket has gone by hosts.
  DeviceChoice choice_;
  BucketQueue<Active> active_;
  bool routes_ = false;
  std::uint64_t before_ = 0;  ///< Buckets that had completed when routing began.
  bool chosen_ = false;
  std::uint64_t routed_ = 0;      ///< Buckets of `active_` that have their way, since then.
  std::uint64_t last_place_ = 0;  ///< The largest that start() was given.
  std::uint64_t fed_ = 0;         ///< Buckets of `active_` that the host's backend has, since then.
  bool aborted_ = false;
  Status failure_;
};

}  // namespace horo::runtime
