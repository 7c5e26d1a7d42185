// SPDX-License-Identifier: Apache-2.0
// An accelerator's memory, streams and events, without its headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "runtime/device/stream.hpp"
#include "runtime/tensor/dtype.hpp"

namespace horo::runtime {

/// One stretch of device memory that a pack or unpack kernel copies.
struct DeviceSpan {
  void* memory = nullptr;
  std::uint64_t elements = 0;
};

/// How elements are converted by a copy: `to` and `from` are equal or both floating point.
struct Conversion {
  DType from = DType::f32;
  DType to = DType::f32;
  double scale = 1;  ///< Applied before the rounding to `to`; exactly 1: not at all.
};

/// The kernel that copies many tensors. Thread: one at a time. Fails: io (the driver's words),
/// unsupported (that conversion).
class Packer {
 public:
  virtual ~Packer() = default;

  /// One kernel: the parts, end to end, into `buffer`; and back.
  virtual Status pack(void* buffer, std::span<const DeviceSpan> parts, const Conversion& how,
                      StreamHandle stream) = 0;
  virtual Status unpack(std::span<const DeviceSpan> parts, const void* buffer,
                        const Conversion& how, StreamHandle stream) = 0;
};

/// Work goes to streams and never blocks the host, but for allocations. Thread: any.
/// Fails: out_of_memory, io (the driver's words).
class Device {
 public:
  virtual ~Device() = default;
  virtual int index() const = 0;

  /// As tools show it, equal for equal devices in all processes. Empty: unknown.
  virtual std::string uuid() const { return {}; }

  /// It is the calling thread's device until leave(), for libraries that ask which that is.
  virtual Status enter() = 0;
  virtual void leave() = 0;
  /// Null: there are no kernels for this device.
  virtual Packer* packer() = 0;

  virtual Result<void*> allocate(std::uint64_t bytes) = 0;
  virtual Result<void*> allocate_host(std::uint64_t bytes) = 0;  ///< Pinned.
  virtual void free(void* memory) = 0;
  virtual void free_host(void* memory) = 0;

  virtual Result<StreamHandle> make_stream() = 0;
  /// Its kernels get the device before those of other streams: other ranks wait for them.
  virtual Result<StreamHandle> make_urgent_stream() = 0;
  virtual void destroy_stream(StreamHandle stream) = 0;
  virtual Result<EventHandle> make_event() = 0;
  /// An event that also has the time at which it ran, which elapsed() reads. Fails also:
  /// unsupported (the driver tells no times).
  virtual Result<EventHandle> make_timed_event() = 0;
  virtual void destroy_event(EventHandle event) = 0;

  /// The stream's work goes to a graph instead of the device.
  virtual Result<bool> is_capturing(StreamHandle stream) = 0;
  virtual Status record(EventHandle event, StreamHandle stream) = 0;
  /// Work put on `stream` from now on runs after `event`.
  virtual Status wait(StreamHandle stream, EventHandle event) = 0;
  /// Whether all work before the last record() has run.
  virtual Result<bool> done(EventHandle event) = 0;
  /// The time on the device from one timed event to another, in nanoseconds; less than zero if `to`
  /// has run before `from`. Fails also when one of them has not run yet.
  virtual Result<double> elapsed(EventHandle from, EventHandle to) = 0;

  /// Copies between any two memories of host and device.
  virtual Status copy(void* to, const void* from, std::uint64_t bytes, StreamHandle stream) = 0;
};

/// The calling thread's device while it lives.
class EnteredDevice {
 public:
  explicit EnteredDevice(Device& device) : device_(device), entered_(device.enter()) {}

  ~EnteredDevice() {
    if (entered_) device_.leave();
  }

  EnteredDevice(const EnteredDevice&) = delete;
  EnteredDevice& operator=(const EnteredDevice&) = delete;

  /// Fails: io.
  const Status& status() const { return entered_; }

 private:
  Device& device_;
  const Status entered_;
};

}  // namespace horo::runtime
