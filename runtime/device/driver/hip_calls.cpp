// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/driver/hip_calls.hpp"

#include <array>
#include <cstring>
#include <dlfcn.h>

namespace horo::runtime::cuda {

namespace {

constexpr Code kInvalidValue = 1;
constexpr Code kInvalidContext = 201;
constexpr int kCopyAnyDirection = 4;           // hipMemcpyDefault
constexpr int kOtherMemoryTypes = 60'000'000;  // ROCm 6 has the numbers of CUDA.
constexpr unsigned kDeviceTypeBefore = 1;      // hipMemoryTypeDevice before it
constexpr unsigned kHostType = 1;              // CU_MEMORYTYPE_HOST

/// HIP's own functions behind the adapted ones. They are written once, when the runtime is loaded.
struct HipCalls {
  Code (*get_device)(int* device) = nullptr;
  Code (*set_device)(int device) = nullptr;
  Code (*copy)(void* to, const void* from, std::size_t bytes, int direction,
               StreamHandle stream) = nullptr;
  Code (*pointer_attribute)(void* value, int attribute, Address pointer) = nullptr;
  Code (*open_memory)(Address* memory, IpcHandle handle, unsigned flags) = nullptr;
  Code (*version)(int* version) = nullptr;
  const char* (*error_name)(Code code) = nullptr;
  const char* (*error_text)(Code code) = nullptr;
};

HipCalls hip;

/// The devices that the calling thread had before push_context(), the innermost last. It has no
/// destructor, because devices may be used while a thread ends.
struct DevicesBefore {
  static constexpr std::size_t kMost = 32;
  std::array<int, kMost> device;
  std::size_t count;
};

thread_local constinit DevicesBefore before{};

// A context is one more than its device, as a pointer.
Code retain_context(Context* context, int device) {
  *context = reinterpret_cast<Context>(  // NOLINT(performance-no-int-to-ptr): a number
      static_cast<std::uintptr_t>(device) + 1);
  return kSuccess;
}

Code release_context(int /*device*/) {
  return kSuccess;
}

Code push_context(Context context) {
  int now = 0;
  if (context == nullptr || before.count == DevicesBefore::kMost) return kInvalidContext;
  if (const auto code = hip.get_device(&now); code != kSuccess) return code;
  const auto device = static_cast<int>(reinterpret_cast<std::uintptr_t>(context) - 1);
  if (const auto code = hip.set_device(device); code != kSuccess) return code;
  before.device[before.count++] = now;
  return kSuccess;
}

Code pop_context(Context* context) {
  int now = 0;
  if (before.count == 0) return kInvalidContext;
  if (context != nullptr && hip.get_device(&now) == kSuccess) retain_context(context, now);
  return hip.set_device(before.device[--before.count]);
}

Code copy(Address to, Address from, std::size_t bytes, StreamHandle stream) {
  // NOLINTBEGIN(performance-no-int-to-ptr): addresses
  return hip.copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes,
                  kCopyAnyDirection, stream);
  // NOLINTEND(performance-no-int-to-ptr)
}

bool has_types_of_cuda() {
  static const bool has = [] {
    int version = 0;
    return hip.version(&version) == kSuccess && version >= kOtherMemoryTypes;
  }();
  return has;
}

Code pointer_attribute(void* value, int attribute, Address pointer) {
  const auto code = hip.pointer_attribute(value, attribute, pointer);
  if (code != kSuccess || attribute != kMemoryType || has_types_of_cuda()) return code;
  unsigned type = 0;
  std::memcpy(&type, value, sizeof type);
  type = type == kDeviceTypeBefore ? kDeviceType : kHostType;
  std::memcpy(value, &type, sizeof type);
  return code;
}

Code open_memory(Address* memory, IpcHandle handle, unsigned flags) {
  const auto code = hip.open_memory(memory, handle, flags);
  return code == kInvalidValue ? hip.open_memory(memory, handle, 0) : code;
}

Code error_name(Code code, const char** name) {
  *name = hip.error_name(code);
  return kSuccess;
}

Code error_text(Code code, const char** text) {
  *text = hip.error_text(code);
  return kSuccess;
}

/// Keeps HIP's own function, which the table has by its name, and puts the adapted one there.
template <typename Own, typename Function>
void replace(Own& own, Function& entry, Function adapted) {
  own = reinterpret_cast<Own>(reinterpret_cast<void*>(entry));
  entry = adapted;
}

}  // namespace

std::string adapt_hip(void* library, Driver& driver) {
  hip.version = driver.version;
  driver.retain_primary_context = &retain_context;
  driver.release_primary_context = &release_context;
  replace(hip.set_device, driver.push_context, &push_context);
  driver.pop_context = &pop_context;
  replace(hip.copy, driver.copy, &copy);
  replace(hip.pointer_attribute, driver.pointer_attribute, &pointer_attribute);
  replace(hip.error_name, driver.error_name, &error_name);
  replace(hip.error_text, driver.error_text, &error_text);
  if (driver.share_memory != nullptr) replace(hip.open_memory, driver.open_memory, &open_memory);
  hip.get_device = reinterpret_cast<Code (*)(int*)>(dlsym(library, "hipGetDevice"));
  return hip.get_device == nullptr ? "hipGetDevice" : "";
}

}  // namespace horo::runtime::cuda
