// SPDX-License-Identifier: Apache-2.0
// Answers what torch asks of each type of device: the current device and stream, new streams, and
// events.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "tests/software_device/torch_device/torch_allocator.hpp"
#include "tests/software_device/torch_device/torch_driver.hpp"

namespace horo::torch_device {

namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

constexpr auto kType = c10::DeviceType::PrivateUse1;

Device device_of(int index) {
  return {kType, static_cast<DeviceIndex>(index)};
}

Stream stream_of(Device device, void* handle) {
  return Stream(Stream::UNSAFE, device, reinterpret_cast<std::int64_t>(handle));
}

void* handle_of(const Stream& stream) {
  return reinterpret_cast<void*>(stream.id());
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }

  Device exchangeDevice(Device device) const override {
    return device_of(std::exchange(Current::of_thread().device, device.index()));
  }

  Device getDevice() const override { return device_of(Current::of_thread().device); }

  void setDevice(Device device) const override { Current::of_thread().device = device.index(); }

  void uncheckedSetDevice(Device device) const noexcept override {
    Current::of_thread().device = device.index();
  }

  Stream getStream(Device device) const override {
    const auto known = device.has_index() ? device : getDevice();
    return stream_of(known, Current::stream(known.index()));
  }

  Stream getDefaultStream(Device device) const override { return stream_of(device, nullptr); }

  Stream getNewStream(Device device, int) const override {
    const InContext context(device.index());
    void* made = nullptr;
    check(driver().make_stream(&made, 1), "cuStreamCreate");
    return stream_of(device, made);
  }

  Stream getStreamFromGlobalPool(Device device, bool) const override {
    return getNewStream(device, 0);
  }

  Stream exchangeStream(Stream stream) const override {
    auto& current = Current::of_thread().streams[stream.device_index()];
    return stream_of(stream.device(), std::exchange(current, handle_of(stream)));
  }

  DeviceIndex deviceCount() const noexcept override {
    return static_cast<DeviceIndex>(device_count());
  }

  void record(void** event, const Stream& stream, DeviceIndex, c10::EventFlag) const override {
    const InContext context(stream.device_index());
    if (*event == nullptr) check(driver().make_event(event, 2), "cuEventCreate");
    check(driver().record(*event, handle_of(stream)), "cuEventRecord");
  }

  void block(void* event, const Stream& stream) const override {
    if (event == nullptr) return;
    const InContext context(stream.device_index());
    check(driver().wait(handle_of(stream), event, 0), "cuStreamWaitEvent");
  }

  bool queryEvent(void* event) const override {
    return event == nullptr || driver().query(event) == 0;
  }

  void destroyEvent(void* event, DeviceIndex) const noexcept override {
    if (event != nullptr) static_cast<void>(driver().destroy_event(event));
  }

  void synchronizeEvent(void* event) const override {
    if (event != nullptr) check(driver().synchronize_event(event), "cuEventSynchronize");
  }

  void synchronizeStream(const Stream& stream) const override {
    const InContext context(stream.device_index());
    check(driver().synchronize_stream(handle_of(stream)), "cuStreamSynchronize");
  }

  void recordDataPtrOnStream(const c10::DataPtr& data, const Stream& stream) const override {
    CachingAllocator::instance().record(data.get(), handle_of(stream));
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }

  bool isAvailable() const override { return true; }

  bool hasPrimaryContext(DeviceIndex) const override { return true; }

  DeviceIndex deviceCount() const override { return static_cast<DeviceIndex>(device_count()); }

  void setCurrentDevice(DeviceIndex device) const override { Current::of_thread().device = device; }

  DeviceIndex getCurrentDevice() const override {
    return static_cast<DeviceIndex>(Current::of_thread().device);
  }

  DeviceIndex exchangeDevice(DeviceIndex device) const override {
    return static_cast<DeviceIndex>(std::exchange(Current::of_thread().device, device));
  }

  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override {
    return exchangeDevice(device);
  }
};

[[maybe_unused]] const bool hooked = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace

}  // namespace horo::torch_device

// -- For Python, by ctypes ------------------------------------------------------------------------

#define ENTRY extern "C" __attribute__((visibility("default")))

using horo::torch_device::Current;

ENTRY void* horo_torch_stream(int device) {
  return Current::stream(device);
}

/// Makes a stream the calling thread's current one, and returns the one before.
ENTRY void* horo_torch_set_stream(int device, void* stream) {
  return std::exchange(Current::of_thread().streams[device], stream);
}

ENTRY void* horo_torch_new_stream(int device) {
  const horo::torch_device::InContext context(device);
  void* made = nullptr;
  return horo::torch_device::driver().make_stream(&made, 1) == 0 ? made : nullptr;
}

ENTRY int horo_torch_synchronize(int device, void* stream) {
  const horo::torch_device::InContext context(device);
  return horo::torch_device::driver().synchronize_stream(stream);
}

/// `stream` waits for what is now on `other`.
ENTRY void horo_torch_wait(int device, void* stream, void* other) {
  const horo::torch_device::InContext context(device);
  const auto& driver = horo::torch_device::driver();
  void* event = nullptr;
  horo::torch_device::check(driver.make_event(&event, 2), "cuEventCreate");
  horo::torch_device::check(driver.record(event, other), "cuEventRecord");
  horo::torch_device::check(driver.wait(stream, event, 0), "cuStreamWaitEvent");
  static_cast<void>(driver.destroy_event(event));
}

ENTRY void horo_torch_record(void* memory, void* stream) {
  horo::torch_device::CachingAllocator::instance().record(memory, stream);
}
