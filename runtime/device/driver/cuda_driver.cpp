// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/driver/cuda_driver.hpp"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>

#include "base/mutex.hpp"
#include "runtime/device/device_memory.hpp"

namespace horo::runtime::cuda {

namespace {

constexpr Code kOutOfMemory = 2;
constexpr Code kNoDevice = 100;

std::atomic<const Driver*> loaded{nullptr};
Mutex loading;

template <typename Function>
bool may_find(void* library, Function& function, const char* symbol) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

/// All of these functions, or the first is null.
void find_sharing(void* library, Driver& driver) {
  if (!may_find(library, driver.open_memory, "cuIpcOpenMemHandle_v2") ||
      !may_find(library, driver.close_memory, "cuIpcCloseMemHandle") ||
      !may_find(library, driver.share_event, "cuIpcGetEventHandle") ||
      !may_find(library, driver.open_event, "cuIpcOpenEventHandle") ||
      !may_find(library, driver.share_memory, "cuIpcGetMemHandle"))
    driver.share_memory = nullptr;
}

/// CUDA 11.4 has the second version, which knows slices of a GPU (MIG).
void find_uuid(void* library, Driver& driver) {
  if (!may_find(library, driver.device_uuid, "cuDeviceGetUuid_v2"))
    may_find(library, driver.device_uuid, "cuDeviceGetUuid");
}

/// Finds functions that must be there, and lists those that are not.
struct Needed {
  template <typename Function>
  void operator()(Function& function, const char* symbol) {
    if (!may_find(library, function, symbol))
      missing += missing.empty() ? symbol : fmt::format(", {}", symbol);
  }

  void* library = nullptr;
  std::string missing{};
};

void find_launches(Needed& find, Driver& driver) {
  find(driver.version, "cuDriverGetVersion");
  find(driver.load_module, "cuModuleLoadData");
  find(driver.unload_module, "cuModuleUnload");
  find(driver.module_function, "cuModuleGetFunction");
  find(driver.launch, "cuLaunchKernel");
}

/// Fills the table; the text lists the functions that the library lacks.
std::string find_functions(void* library, Driver& driver) {
  Needed find{library};
  find_launches(find, driver);
  find(driver.init, "cuInit");
  find(driver.device_count, "cuDeviceGetCount");
  find(driver.device_get, "cuDeviceGet");
  find(driver.retain_primary_context, "cuDevicePrimaryCtxRetain");
  find(driver.release_primary_context, "cuDevicePrimaryCtxRelease_v2");
  find(driver.push_context, "cuCtxPushCurrent_v2");
  find(driver.pop_context, "cuCtxPopCurrent_v2");
  find(driver.current_device, "cuCtxGetDevice");
  find(driver.context_of_stream, "cuStreamGetCtx");
  find(driver.allocate, "cuMemAlloc_v2");
  find(driver.free, "cuMemFree_v2");
  find(driver.allocate_host, "cuMemHostAlloc");
  find(driver.free_host, "cuMemFreeHost");
  find(driver.pointer_attribute, "cuPointerGetAttribute");
  find(driver.copy, "cuMemcpyAsync");
  find(driver.make_stream, "cuStreamCreate");
  find(driver.make_stream_with_priority, "cuStreamCreateWithPriority");
  find(driver.priority_range, "cuCtxGetStreamPriorityRange");
  find(driver.destroy_stream, "cuStreamDestroy_v2");
  find(driver.stream_is_capturing, "cuStreamIsCapturing");
  find(driver.make_event, "cuEventCreate");
  find(driver.destroy_event, "cuEventDestroy_v2");
  find(driver.record, "cuEventRecord");
  find(driver.query, "cuEventQuery");
  find(driver.wait, "cuStreamWaitEvent");
  find(driver.error_name, "cuGetErrorName");
  find(driver.error_text, "cuGetErrorString");
  return find.missing;
}

Failure no_device() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) {
    return fail(Errc::unavailable,
                "CUDA's driver sees no device: this machine has none, or the container was not "
                "given any");
  }
  return fail(Errc::unavailable,
              "CUDA's driver sees no device: CUDA_VISIBLE_DEVICES is '{}'; it must begin with the "
              "number or UUID of a device of this machine, or be unset",
              visible);
}

Status start(const Driver& driver) {
  const auto code = driver.init(0);
  int count = 0;
  if (code == kSuccess)
    HORO_TRY_STATUS(driver.status(driver.device_count(&count), "cuDeviceGetCount"));
  if (code == kNoDevice || (code == kSuccess && count == 0)) return no_device();
  if (auto ready = driver.status(code, "cuInit"); !ready)
    return fail(Errc::unavailable, "CUDA's driver cannot be used: {}", ready.error().message);
  return {};
}

}  // namespace

Status Driver::status(Code code, const char* call) const {
  if (code == kSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  static_cast<void>(error_name(code, &name));
  static_cast<void>(error_text(code, &text));
  return fail(code == kOutOfMemory ? Errc::out_of_memory : Errc::io, "{}: {} ({}, {})", call,
              text == nullptr ? "an error that the driver does not know" : text,
              name == nullptr ? "no name" : name, code);
}

const Driver* loaded_driver() {
  return loaded.load(std::memory_order_acquire);
}

Result<const Driver*> load_driver(const std::string& file) {
  const MutexLock lock(loading);
  if (const auto* const driver = loaded_driver(); driver != nullptr) return driver;
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return fail(Errc::unavailable,
                "CUDA's driver cannot be loaded: {}; it comes with NVIDIA's "
                "driver, on machines with a GPU",
                why == nullptr ? file : why);
  }
  auto driver = std::make_unique<Driver>();
  find_sharing(library, *driver);
  find_uuid(library, *driver);
  if (const auto missing = find_functions(library, *driver); !missing.empty()) {
    return fail(Errc::unavailable, "{} has no {}; install a driver for CUDA 10 or later", file,
                missing);
  }
  HORO_TRY_STATUS(start(*driver));
  ask_about_memory(driver->pointer_attribute);
  // The library is never unloaded, because it may have threads.
  loaded.store(driver.get(), std::memory_order_release);
  return driver.release();
}

}  // namespace horo::runtime::cuda
