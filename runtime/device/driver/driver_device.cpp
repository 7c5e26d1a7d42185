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

/// Null, with a warning where there is a file that cannot be used.
std::unique_ptr<DriverKernels> load_kernels(const Driver& driver, cuda::Context context) {
  const auto file = DriverKernels::file(*driver.api);
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
    std::array<char, 16> bytes{};
    if (driver_.device_uuid == nullptr ||
        driver_.device_uuid(bytes.data(), handle_) != cuda::kSuccess)
      return {};
    return cuda::uuid_text(*driver_.api, bytes);
  }

  Status enter() override {
    return driver_.status(driver_.push_context(context_), driver_.names().push_context);
  }

  void leave() override {
    cuda::Context own = nullptr;
    static_cast<void>(driver_.pop_context(&own));
  }

  Packer* packer() override { return kernels_.get(); }

  DriverParts parts() const { return {&driver_, context_, kernels_.get()}; }

  Result<void*> allocate(std::uint64_t bytes) override {
    Address memory = 0;
    HORO_TRY_STATUS(call(names().allocate, [&] { return driver_.allocate(&memory, bytes); }));
    return pointer_of(memory);
  }

  Result<void*> allocate_host(std::uint64_t bytes) override {
    void* memory = nullptr;
    HORO_TRY_STATUS(call(names().allocate_host, [&] {
      return driver_.allocate_host(&memory, bytes, cuda::kHostMemoryOfAllContexts);
    }));
    return memory;
  }

  void free(void* memory) override {
    static_cast<void>(call(names().free, [&] { return driver_.free(address_of(memory)); }));
  }

  void free_host(void* memory) override {
    static_cast<void>(call(names().free_host, [&] { return driver_.free_host(memory); }));
  }

  Result<StreamHandle> make_stream() override {
    StreamHandle stream = nullptr;
    // Work of the legacy default stream is no reason to wait.
    HORO_TRY_STATUS(call(names().make_stream,
                         [&] { return driver_.make_stream(&stream, cuda::kStreamNonBlocking); }));
    return stream;
  }

  Result<StreamHandle> make_urgent_stream() override {
    StreamHandle stream = nullptr;
    int least = 0;
    int greatest = 0;
    HORO_TRY_STATUS(
        call(names().priority_range, [&] { return driver_.priority_range(&least, &greatest); }));
    HORO_TRY_STATUS(call(names().make_stream_with_priority, [&] {
      return driver_.make_stream_with_priority(&stream, cuda::kStreamNonBlocking, greatest);
    }));
    return stream;
  }

  void destroy_stream(StreamHandle stream) override {
    static_cast<void>(call(names().destroy_stream, [&] { return driver_.destroy_stream(stream); }));
  }

  Result<EventHandle> make_event() override {
    EventHandle event = nullptr;
    HORO_TRY_STATUS(call(names().make_event,
                         [&] { return driver_.make_event(&event, cuda::kEventWithoutTimes); }));
    return event;
  }

  Result<EventHandle> make_timed_event() override {
    if (driver_.elapsed == nullptr)
      return fail(Errc::unsupported, "the driver has no {}", names().elapsed[0]);
    EventHandle event = nullptr;
    HORO_TRY_STATUS(call(names().make_event,
                         [&] { return driver_.make_event(&event, cuda::kEventWithTimes); }));
    return event;
  }

  void destroy_event(EventHandle event) override {
    static_cast<void>(call(names().destroy_event, [&] { return driver_.destroy_event(event); }));
  }

  Result<bool> is_capturing(StreamHandle stream) override {
    int capturing = 0;
    HORO_TRY_STATUS(call(names().stream_is_capturing,
                         [&] { return driver_.stream_is_capturing(stream, &capturing); }));
    return capturing != 0;
  }

  Status record(EventHandle event, StreamHandle stream) override {
    return call(names().record, [&] { return driver_.record(event, stream); });
  }

  Status wait(StreamHandle stream, EventHandle event) override {
    return call(names().wait, [&] { return driver_.wait(stream, event, 0); });
  }

  Result<bool> done(EventHandle event) override {
    const cuda::BesideCapture beside(driver_);
    const auto code = driver_.query(event);
    if (code == cuda::kNotReady) return false;
    HORO_TRY_STATUS(driver_.status(code, driver_.names().query));
    return true;
  }

  Result<double> elapsed(EventHandle from, EventHandle to) override {
    constexpr double kNsPerMs = 1e6;
    if (driver_.elapsed == nullptr)
      return fail(Errc::unsupported, "the driver has no {}", names().elapsed[0]);
    float ms = 0;
    HORO_TRY_STATUS(call(names().elapsed[0], [&] { return driver_.elapsed(&ms, from, to); }));
    return static_cast<double>(ms) * kNsPerMs;
  }

  Status copy(void* to, const void* from, std::uint64_t bytes, StreamHandle stream) override {
    return call(names().copy,
                [&] { return driver_.copy(address_of(to), address_of(from), bytes, stream); });
  }

 private:
  template <typename Body>
  Status call(std::string_view name, Body body) const {
    return cuda::call_in(driver_, context_, name, body);
  }

  const cuda::DriverNames& names() const { return driver_.names(); }

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

Result<std::unique_ptr<Device>> open_driver_device(const Driver& driver, int index) {
  int count = 0;
  HORO_TRY_STATUS(driver.status(driver.device_count(&count), driver.names().device_count));
  if (index < 0 || index >= count)
    return fail(Errc::not_found, "no {} device {}: this process sees {}", driver.api->name, index,
                count);
  int handle = 0;
  HORO_TRY_STATUS(driver.status(driver.device_get(&handle, index), driver.names().device_get));
  cuda::Context context = nullptr;
  HORO_TRY_STATUS(driver.status(driver.retain_primary_context(&context, handle),
                                driver.names().retain_primary_context));
  return std::unique_ptr<Device>(std::make_unique<DriverDevice>(driver, index, handle, context));
}

}  // namespace horo::runtime
