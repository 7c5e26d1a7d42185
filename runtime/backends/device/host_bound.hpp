// SPDX-License-Identifier: Apache-2.0
// A bucket in device memory that passes, wholly or in part, through host memory.
#pragma once

#include "base/result.hpp"
#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// Thread: the holder of the progress token.
class HostBound {
 public:
  virtual ~HostBound() = default;

  /// It still has operations to start that wait for other ranks on the device itself, and starts
  /// none before allow_starts().
  virtual bool has_starts() const = 0;
  virtual void allow_starts() = 0;

  /// Puts work on the device for which there is memory, and looks which has ended. True when
  /// anything moved. Fails: out_of_memory; as the device.
  virtual Result<bool> fill() = 0;

  /// Starts the next movements between the ranks whose data have come, in order; true when all have
  /// been started. Fails: as Backend::start.
  virtual Result<bool> feed(Backend& host) = 0;

  /// Takes back what has been moved. True when anything moved.
  virtual bool drain(const Backend& host) = 0;

  /// Nothing of it is under way any more.
  virtual bool done() const = 0;

  /// Work is on the device: look again soon.
  virtual bool waits_for_device() const = 0;

  /// Gives the memory back that the device has left; true when that is all. Nothing else follows.
  virtual bool abandon() = 0;

  /// Memory that the device may still use is never freed. What the device still does comes before
  /// DeviceOutcome::finished.
  virtual void forget() = 0;
};

}  // namespace horo::runtime
