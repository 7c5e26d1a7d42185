// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/driver/shared_device.hpp"

#include <cstring>

#include "runtime/device/driver/current_context.hpp"
#include "runtime/device/driver/driver_device.hpp"

namespace horo::runtime {

namespace {

constexpr unsigned kOpenWithPeerAccess = 1;
constexpr unsigned kBetweenProcesses = 4;

std::string bytes_of(const cuda::IpcHandle& handle) {
  return {handle.bytes.begin(), handle.bytes.end()};
}

Result<cuda::IpcHandle> handle_of(const std::string& bytes) {
  cuda::IpcHandle handle;
  if (bytes.size() != handle.bytes.size())
    return fail(Errc::protocol, "{} bytes are no handle of device memory", bytes.size());
  std::memcpy(handle.bytes.data(), bytes.data(), bytes.size());
  return handle;
}

}  // namespace

Result<SharedDevice> SharedDevice::of(Device& device) {
  const auto parts = parts_of(device);
  if (!parts || parts->kernels == nullptr) {
    return fail(Errc::unsupported, "device {} has no kernels: {}", device.index(),
                parts ? "this build has none" : "it is reached by neither CUDA nor HIP");
  }
  if (parts->driver->share_memory == nullptr)
    return fail(Errc::unsupported, "{} cannot share memory between processes",
                parts->driver->api->library);
  return SharedDevice(*parts->driver, parts->context, *parts->kernels);
}

Result<std::string> SharedDevice::share_memory(void* memory) const {
  cuda::IpcHandle handle;
  HORO_TRY_STATUS(cuda::call_in(*driver_, context_, driver_->names().share_memory, [&] {
    return driver_->share_memory(&handle, reinterpret_cast<cuda::Address>(memory));
  }));
  return bytes_of(handle);
}

Result<void*> SharedDevice::open_memory(const std::string& bytes) const {
  HORO_TRY(const auto handle, handle_of(bytes));
  cuda::Address memory = 0;
  HORO_TRY_STATUS(cuda::call_in(*driver_, context_, driver_->names().open_memory, [&] {
    return driver_->open_memory(&memory, handle, kOpenWithPeerAccess);
  }));
  return reinterpret_cast<void*>(memory);  // NOLINT(performance-no-int-to-ptr): CUDA's addresses
}

void SharedDevice::close_memory(void* memory) const {
  static_cast<void>(cuda::call_in(*driver_, context_, driver_->names().close_memory, [&] {
    return driver_->close_memory(reinterpret_cast<cuda::Address>(memory));
  }));
}

Result<EventHandle> SharedDevice::make_event() const {
  EventHandle event = nullptr;
  HORO_TRY_STATUS(cuda::call_in(*driver_, context_, driver_->names().make_event, [&] {
    return driver_->make_event(&event, cuda::kEventWithoutTimes | kBetweenProcesses);
  }));
  return event;
}

Result<std::string> SharedDevice::share_event(EventHandle event) const {
  cuda::IpcHandle handle;
  HORO_TRY_STATUS(cuda::call_in(*driver_, context_, driver_->names().share_event,
                                [&] { return driver_->share_event(&handle, event); }));
  return bytes_of(handle);
}

Result<EventHandle> SharedDevice::open_event(const std::string& bytes) const {
  HORO_TRY(const auto handle, handle_of(bytes));
  EventHandle event = nullptr;
  HORO_TRY_STATUS(cuda::call_in(*driver_, context_, driver_->names().open_event,
                                [&] { return driver_->open_event(&event, handle); }));
  return event;
}

}  // namespace horo::runtime
