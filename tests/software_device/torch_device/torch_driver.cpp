// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/torch_device/torch_driver.hpp"

#include <algorithm>
#include <c10/util/Exception.h>
#include <cstdlib>
#include <dlfcn.h>

namespace horo::torch_device {

namespace {

struct Finder {
  void* library;

  template <typename Function>
  void operator()(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(dlsym(library, name));
    TORCH_CHECK(function != nullptr, "the driver has no ", name);
  }
};

Driver load() {
  const char* const path = std::getenv("HORO_GPU_DRIVER");
  TORCH_CHECK(path != nullptr, "HORO_GPU_DRIVER does not name the software device");
  const Finder find{dlopen(path, RTLD_NOW | RTLD_LOCAL)};
  TORCH_CHECK(find.library != nullptr, dlerror());
  Driver made{};
  find(made.init, "cuInit");
  find(made.device_count, "cuDeviceGetCount");
  find(made.retain, "cuDevicePrimaryCtxRetain");
  find(made.push, "cuCtxPushCurrent_v2");
  find(made.pop, "cuCtxPopCurrent_v2");
  find(made.allocate, "cuMemAlloc_v2");
  find(made.copy, "cuMemcpyAsync");
  find(made.make_stream, "cuStreamCreate");
  find(made.synchronize_stream, "cuStreamSynchronize");
  find(made.make_event, "cuEventCreate");
  find(made.destroy_event, "cuEventDestroy_v2");
  find(made.record, "cuEventRecord");
  find(made.query, "cuEventQuery");
  find(made.synchronize_event, "cuEventSynchronize");
  find(made.wait, "cuStreamWaitEvent");
  find(made.launch, "horo_software_device_launch");
  check(made.init(0), "cuInit");
  return made;
}

}  // namespace

void check(int code, const char* call) {
  TORCH_CHECK(code == 0, call, " returned ", code);
}

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

int device_count() {
  int count = 0;
  check(driver().device_count(&count), "cuDeviceGetCount");
  return std::min(count, Current::kMostDevices);
}

InContext::InContext(int device) {
  void* context = nullptr;
  check(driver().retain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver().push(context), "cuCtxPushCurrent");
}

InContext::~InContext() {
  static_cast<void>(driver().pop(nullptr));
}

Current& Current::of_thread() {
  static thread_local Current current;
  return current;
}

}  // namespace horo::torch_device
