// SPDX-License-Identifier: Apache-2.0
// A device that this process uses, with the events and the memory for results that it uses again
// and again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/device_clock.hpp"
#include "runtime/device/device_turns.hpp"
#include "runtime/device/start_order.hpp"

namespace horo::runtime {

/// An event that goes back to its device when the last owner lets go.
using SharedEvent = std::shared_ptr<void>;

/// A result in device memory. Its next user waits for the events that note_use() was told.
class DeviceResult {
 public:
  void* memory() const { return memory_; }

  /// Work of the next user comes after these.
  const std::vector<SharedEvent>& before() const { return before_; }

  /// Work before `event` uses the memory.
  void note_use(SharedEvent event) { after_.push_back(std::move(event)); }

 private:
  friend class OpenDevice;

  void* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::vector<SharedEvent> before_;
  std::vector<SharedEvent> after_;
};

using SharedResult = std::shared_ptr<DeviceResult>;

/// Owns the idle events and the idle memory for results of one device. It outlives all that it has
/// handed out. Thread: any.
class OpenDevice {
 public:
  explicit OpenDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  ~OpenDevice();
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  Device& device() const { return *device_; }

  int index() const { return device_->index(); }

  /// Fails: as Device::make_event.
  Result<SharedEvent> event();

  /// At least `bytes`. Fails: out_of_memory, io.
  Result<SharedResult> result(std::uint64_t bytes);

  /// Thread: the holder of the progress token.
  DeviceTurns& turns() { return turns_; }

  /// Measures when the device works. Thread: the holder of the progress token.
  DeviceClock& clock() {
    if (clock_ == nullptr) clock_ = std::make_unique<DeviceClock>(*device_);
    return *clock_;
  }

  /// DeviceClock::look(), where times are measured. Thread: the holder of the progress token.
  void look_at_clock() {
    if (clock_ != nullptr) [[unlikely]]
      clock_->look();
  }

  /// "device 0 of host node7: cuMemcpyAsync: ..."
  Error named(const Error& error) const;

 private:
  static constexpr std::size_t kMostBlocks = 8;
  static constexpr std::uint64_t kLeastBlock = 512;

  struct Block {
    void* memory = nullptr;
    std::uint64_t bytes = 0;
    std::vector<SharedEvent> used;  ///< Before these events the memory may be in use.
  };

  void put_back(DeviceResult* result);
  bool is_idle(const Block& block) const;

  const std::unique_ptr<Device> device_;
  DeviceTurns turns_;
  std::unique_ptr<DeviceClock> clock_;  ///< Null: nothing has been measured.
  Mutex mutex_;
  std::vector<EventHandle> events_ HORO_GUARDED_BY(mutex_);
  std::vector<Block> blocks_ HORO_GUARDED_BY(mutex_);
};

/// Owns the devices that this process has used. Thread: any.
class Devices {
 public:
  using Open = std::function<Result<std::unique_ptr<Device>>(int index)>;

  /// `load` looks whether there is a device at all.
  Devices(std::function<Status()> load, Open open)
      : load_(std::move(load)), open_(std::move(open)) {}

  /// Before the first tensor in device memory is declared. Blocks: while a driver starts. Fails:
  /// unavailable (says what is missing).
  Status load() const { return load_(); }

  /// Blocks: while the device is opened, the first time. Fails: not_found, io.
  Result<OpenDevice*> open(int index);

  /// Thread: the holder of the progress token.
  StartOrder& order() { return order_; }

 private:
  const std::function<Status()> load_;
  const Open open_;
  StartOrder order_;
  Mutex mutex_;
  std::vector<std::unique_ptr<OpenDevice>> devices_ HORO_GUARDED_BY(mutex_);
};

}  // namespace horo::runtime
