// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/driver/driver_device.hpp"

#include <array>

#include "base/log.hpp"
#include "runtime/device/driver/current_context.hpp"
#include "runtime/device/driver/driver_kernels.hpp"

namespace horo::runtime {

namespace {

using cuda::Address;
using cuda::Driver;

Address address_of(const void* memory) {
  return reinterpret_cast<Address>(memory);
}

void* pointer_of(Address address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): CUDA's addresses
}

using cuda::Current;

constexpr std::size_t kUuidBytes = 16;

/// "GPU-" and five groups of hexadecimal digits, as nvidia-smi writes it.
std::string uuid_text(const std::array<char, kUuidBytes>& bytes) {
  std::string text = "GPU";
  for (std::size_t b = 0; b < bytes.size(); ++b) {
    const bool begins = b == 0 || b == 4 || b == 6 || b == 8 || b == 10;
    text += fmt::format("{}{:02x}", begins ? "-" : "", static_cast<unsigned char>(bytes[b]));
  }
  return text;
}

/// Null, with a warning where there is a file that cannot be used.
std::unique_ptr<DriverKernels> load_kernels(const Driver& driver, cuda::Context context) {
  const auto file = DriverKernels::file();
  if (file.empty()) return nullptr;
  auto kernels = DriverKernels::load(driver, context, file);
  if (kernels) return std::move(*kernels);
  log::warn("device", "no kernels for devices: {}", kernels.error().message);
  return nullptr;
}

class DriverDevice final : public Device {
 public:
  DriverDevice(const Driver& driver, int index, int handle, cuda::Context context)
      : driver_(driver),
        index_(index),
        handle_(handle),
        context_(context),
        kernels_(load_kernels(driver, context)) {}

  ~DriverDevice() override {
    kernels_.reset();
    static_cast<void>(driver_.release_primary_context(handle_));
  }

  DriverDevice(const DriverDevice&) = delete;
  DriverDevice& operator=(const DriverDevice&) = delete;

  int index() const override { return index_; }

  std::string uuid() const override {
    std::array<char, kUuidBytes> bytes{};
    if (driver_.device_uuid == nullptr ||
        driver_.device_uuid(bytes.data(), handle_) != cuda::kSuccess)
      return {};
    return uuid_text(bytes);
  }

  Status enter() override {
    return driver_.status(driver_.push_context(context_), "cuCtxPushCurrent");
  }

  void leave() override {
    cuda::Context own = nullptr;
    static_cast<void>(driver_.pop_context(&own));
  }

  Packer* packer() override { return kernels_.get(); }

  DriverParts parts() const { return {&driver_, context_, kernels_.get()}; }

  Result<void*> allocate(std::uint64_t bytes) override {
    Address memory = 0;
    HORO_TRY_STATUS(call("cuMemAlloc", [&] { return driver_.allocate(&memory, bytes); }));
    return pointer_of(memory);
  }

  Result<void*> allocate_host(std::uint64_t bytes) override {
    void* memory = nullptr;
    HORO_TRY_STATUS(call("cuMemHostAlloc", [&] {
      return driver_.allocate_host(&memory, bytes, cuda::kHostMemoryOfAllContexts);
    }));
    return memory;
  }

  void free(void* memory) override {
    static_cast<void>(call("cuMemFree", [&] { return driver_.free(address_of(memory)); }));
  }

  void free_host(void* memory) override {
    static_cast<void>(call("cuMemFreeHost", [&] { return driver_.free_host(memory); }));
  }

  Result<StreamHandle> make_stream() override {
    StreamHandle stream = nullptr;
    // Work of the legacy default stream is no reason to wait.
    HORO_TRY_STATUS(call("cuStreamCreate",
                         [&] { return driver_.make_stream(&stream, cuda::kStreamNonBlocking); }));
    return stream;
  }

  Result<StreamHandle> make_urgent_stream() override {
    StreamHandle stream = nullptr;
    int least = 0;
    int greatest = 0;
    HORO_TRY_STATUS(call("cuCtxGetStreamPriorityRange",
                         [&] { return driver_.priority_range(&least, &greatest); }));
    HORO_TRY_STATUS(call("cuStreamCreateWithPriority", [&] {
      return driver_.make_stream_with_priority(&stream, cuda::kStreamNonBlocking, greatest);
    }));
    return stream;
  }

  void destroy_stream(StreamHandle stream) override {
    static_cast<void>(call("cuStreamDestroy", [&] { return driver_.destroy_stream(stream); }));
  }

  Result<EventHandle> make_event() override {
    EventHandle event = nullptr;
    HORO_TRY_STATUS(call("cuEventCreate",
                         [&] { return driver_.make_event(&event, cuda::kEventWithoutTimes); }));
    return event;
  }

  void destroy_event(EventHandle event) override {
    static_cast<void>(call("cuEventDestroy", [&] { return driver_.destroy_event(event); }));
  }

  Result<bool> is_capturing(StreamHandle stream) override {
    int capturing = 0;
    HORO_TRY_STATUS(call("cuStreamIsCapturing",
                         [&] { return driver_.stream_is_capturing(stream, &capturing); }));
    return capturing != 0;
  }

  Status record(EventHandle event, StreamHandle stream) override {
    return call("cuEventRecord", [&] { return driver_.record(event, stream); });
  }

  Status wait(StreamHandle stream, EventHandle event) override {
    return call("cuStreamWaitEvent", [&] { return driver_.wait(stream, event, 0); });
  }

  Result<bool> done(EventHandle event) override {
    const auto code = driver_.query(event);
    if (code == cuda::kNotReady) return false;
    HORO_TRY_STATUS(driver_.status(code, "cuEventQuery"));
    return true;
  }

  Status copy(void* to, const void* from, std::uint64_t bytes, StreamHandle stream) override {
    return call("cuMemcpyAsync",
                [&] { return driver_.copy(address_of(to), address_of(from), bytes, stream); });
  }

 private:
  template <typename Body>
  Status call(const char* name, Body body) const {
    return cuda::call_in(driver_, context_, name, body);
  }

  const Driver& driver_;
  const int index_;
  const int handle_;
  const cuda::Context context_;
  std::unique_ptr<DriverKernels> kernels_;  ///< Null: this build has none.
};

}  // namespace

std::optional<DriverParts> parts_of(Device& device) {
  auto* const known = dynamic_cast<DriverDevice*>(&device);
  if (known == nullptr) return {};
  return known->parts();
}

Result<int> device_of_stream(const Driver& driver, StreamHandle stream) {
  int handle = 0;
  if (stream == nullptr) {
    HORO_TRY_STATUS(driver.status(driver.current_device(&handle), "cuCtxGetDevice"));
  } else {
    cuda::Context context = nullptr;
    HORO_TRY_STATUS(driver.status(driver.context_of_stream(stream, &context), "cuStreamGetCtx"));
    const Current current(driver, context);
    HORO_TRY_STATUS(driver.status(driver.current_device(&handle), "cuCtxGetDevice"));
  }
  int count = 0;
  HORO_TRY_STATUS(driver.status(driver.device_count(&count), "cuDeviceGetCount"));
  for (int index = 0; index < count; ++index) {
    int other = 0;
    HORO_TRY_STATUS(driver.status(driver.device_get(&other, index), "cuDeviceGet"));
    if (other == handle) return index;
  }
  return fail(Errc::not_found, "stream {} is of no device that this process sees", stream);
}

Result<std::unique_ptr<Device>> open_driver_device(const Driver& driver, int index) {
  int count = 0;
  HORO_TRY_STATUS(driver.status(driver.device_count(&count), "cuDeviceGetCount"));
  if (index < 0 || index >= count)
    return fail(Errc::not_found, "no CUDA device {}: this process sees {}", index, count);
  int handle = 0;
  HORO_TRY_STATUS(driver.status(driver.device_get(&handle, index), "cuDeviceGet"));
  cuda::Context context = nullptr;
  HORO_TRY_STATUS(
      driver.status(driver.retain_primary_context(&context, handle), "cuDevicePrimaryCtxRetain"));
  return std::unique_ptr<Device>(std::make_unique<DriverDevice>(driver, index, handle, context));
}

}  // namespace horo::runtime
