// SPDX-License-Identifier: Apache-2.0
// The entry points of CUDA's driver that Horo loads, for a software device. They check what the
// documentation asks of a caller: a context that is current, handles that exist, memory that is
// allocated.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/software_device/machine.hpp"
#include "tests/software_device/software_device.h"

#define ENTRY extern "C" __attribute__((visibility("default")))

namespace {

using horo::software_device::kInvalidContext;
using horo::software_device::kInvalidDevice;
using horo::software_device::kInvalidHandle;
using horo::software_device::kInvalidValue;
using horo::software_device::kOutOfMemory;
using horo::software_device::kSuccess;
using horo::software_device::Machine;
using horo::software_device::SharedName;
using horo::software_device::Stream;

constexpr int kNotInitialized = 3;
constexpr int kNoDevice = 100;
constexpr int kMemoryType = 2;             // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kIsManaged = 8;              // CU_POINTER_ATTRIBUTE_IS_MANAGED
constexpr int kDeviceOrdinal = 9;          // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr unsigned kWithoutTimes = 2;      // CU_EVENT_DISABLE_TIMING
constexpr unsigned kBetweenProcesses = 4;  // CU_EVENT_INTERPROCESS
constexpr int kGreatestPriority = -5;      // As on today's GPUs.
constexpr unsigned kHostType = 1;
constexpr unsigned kDeviceType = 2;

bool initialized = false;

/// Devices of the contexts that are current, the innermost last.
thread_local std::vector<int> contexts;

// A context is one more than its device, as a pointer.
void* context_of(int device) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1);  // NOLINT: a handle
}

Machine& machine() {
  return Machine::instance();
}

/// The error of a call that needs a current context; `device` becomes that of the context.
int begin(const char* call, int& device) {
  if (!initialized) return kNotInitialized;
  if (contexts.empty()) return kInvalidContext;
  device = contexts.back();
  return machine().begin_call(call);
}

/// Runs `body(stream)` with the stream of a handle.
template <typename Body>
int on_stream(const char* call, void* handle, Body body) {
  int device = 0;
  if (const int error = begin(call, device); error != kSuccess) return error;
  Stream* const stream = machine().stream_of(handle, device);
  return stream == nullptr ? kInvalidHandle : body(*stream);
}

}  // namespace

// -- Devices and contexts -------------------------------------------------------------------------

ENTRY int cuInit(unsigned flags) {
  int error = machine().begin_call("cuInit");
  if (error == kSuccess && machine().devices() == 0) error = kNoDevice;
  if (error == kSuccess) initialized = true;
  return flags == 0 ? error : kInvalidValue;
}

ENTRY int cuDriverGetVersion(int* version) {
  *version = machine().driver_version();
  return kSuccess;
}

ENTRY int cuDeviceGetCount(int* count) {
  if (!initialized) return kNotInitialized;
  *count = machine().devices();
  return machine().begin_call("cuDeviceGetCount");
}

ENTRY int cuDeviceGet(int* device, int ordinal) {
  if (!initialized) return kNotInitialized;
  *device = ordinal;
  return ordinal >= 0 && ordinal < machine().devices() ? kSuccess : kInvalidDevice;
}

ENTRY int cuDeviceGetUuid_v2(char* uuid, int device) {
  if (device < 0 || device >= machine().devices()) return kInvalidDevice;
  std::memcpy(uuid, "software device", 15);
  uuid[14] = static_cast<char>(uuid[14] + machine().host());
  uuid[15] = static_cast<char>(machine().physical(device));
  return kSuccess;
}

ENTRY int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (!initialized) return kNotInitialized;
  *context = context_of(device);
  return machine().begin_call("cuDevicePrimaryCtxRetain");
}

ENTRY int cuDevicePrimaryCtxRelease_v2(int device) {
  return device < machine().devices() ? kSuccess : kInvalidDevice;
}

ENTRY int cuCtxPushCurrent_v2(void* context) {
  if (context == nullptr) return kInvalidContext;
  contexts.push_back(static_cast<int>(reinterpret_cast<std::uintptr_t>(context) - 1));
  return kSuccess;
}

ENTRY int cuCtxPopCurrent_v2(void** context) {
  if (contexts.empty()) return kInvalidContext;
  if (context != nullptr) *context = context_of(contexts.back());
  contexts.pop_back();
  return kSuccess;
}

// -- Memory ---------------------------------------------------------------------------------------

ENTRY int cuCtxGetDevice(int* device) {
  if (contexts.empty()) return kInvalidContext;
  *device = contexts.back();
  return kSuccess;
}

ENTRY int cuStreamGetCtx(void* handle, void** context) {
  const Stream* const stream = machine().stream_of(handle, 0);
  if (stream == nullptr) return kInvalidHandle;
  *context = context_of(stream->device);
  return kSuccess;
}

ENTRY int cuMemAlloc_v2(std::uint64_t* memory, std::size_t bytes) {
  int device = 0;
  if (const int error = begin("cuMemAlloc", device); error != kSuccess) return error;
  void* made = nullptr;
  const int error = machine().allocate(bytes, device, &made);
  *memory = reinterpret_cast<std::uint64_t>(made);
  return error;
}

ENTRY int cuMemAllocManaged(std::uint64_t* memory, std::size_t bytes, unsigned) {
  int device = 0;
  if (const int error = begin("cuMemAllocManaged", device); error != kSuccess) return error;
  void* made = nullptr;
  const int error = machine().allocate_managed(bytes, device, &made);
  *memory = reinterpret_cast<std::uint64_t>(made);
  return error;
}

ENTRY int cuMemFree_v2(std::uint64_t memory) {
  int device = 0;
  if (const int error = begin("cuMemFree", device); error != kSuccess) return error;
  return machine().free(reinterpret_cast<void*>(memory), false);  // NOLINT: an address
}

ENTRY int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  int device = 0;
  if (const int error = begin("cuMemHostAlloc", device); error != kSuccess) return error;
  return machine().allocate(bytes, -1, memory);
}

ENTRY int cuMemFreeHost(void* memory) {
  int device = 0;
  if (const int error = begin("cuMemFreeHost", device); error != kSuccess) return error;
  return machine().free(memory, true);
}

ENTRY int cuPointerGetAttribute(void* value, int attribute, std::uint64_t pointer) {
  const auto* const address = reinterpret_cast<void*>(pointer);  // NOLINT: an address
  const int device = machine().device_of(address);
  if (device < -1) return kInvalidValue;
  unsigned answer = 0;
  if (attribute == kMemoryType) {
    answer = device < 0 ? kHostType : kDeviceType;
  } else if (attribute == kDeviceOrdinal) {
    answer = static_cast<unsigned>(std::max(device, 0));
  } else if (attribute == kIsManaged) {
    answer = machine().is_managed(address) ? 1 : 0;
  } else {
    return kInvalidValue;
  }
  std::memcpy(value, &answer, sizeof answer);
  return kSuccess;
}

ENTRY int cuMemcpyAsync(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* handle) {
  return on_stream("cuMemcpyAsync", handle, [&](Stream& stream) {
    return machine().copy(reinterpret_cast<void*>(to),          // NOLINT: an address
                          reinterpret_cast<const void*>(from),  // NOLINT: an address
                          bytes, stream);
  });
}

// -- Streams and events ---------------------------------------------------------------------------

ENTRY int cuStreamCreate(void** stream, unsigned) {
  int device = 0;
  if (const int error = begin("cuStreamCreate", device); error != kSuccess) return error;
  *stream = machine().make_stream(device);
  return kSuccess;
}

ENTRY int cuStreamCreateWithPriority(void** stream, unsigned, int priority) {
  int device = 0;
  if (const int error = begin("cuStreamCreateWithPriority", device); error != kSuccess)
    return error;
  auto* const made = machine().make_stream(device);
  // As CUDA does, a number outside of the range counts as its end.
  made->priority = std::clamp(priority, kGreatestPriority, 0);
  *stream = made;
  return kSuccess;
}

ENTRY int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  int device = 0;
  if (const int error = begin("cuCtxGetStreamPriorityRange", device); error != kSuccess)
    return error;
  *least = 0;
  *greatest = kGreatestPriority;
  return kSuccess;
}

ENTRY int cuStreamGetPriority(void* handle, int* priority) {
  return on_stream("cuStreamGetPriority", handle, [&](const Stream& stream) {
    *priority = stream.priority;
    return kSuccess;
  });
}

ENTRY int cuStreamDestroy_v2(void* stream) {
  return machine().destroy_stream(stream);
}

ENTRY int cuStreamSynchronize(void* handle) {
  return on_stream("cuStreamSynchronize", handle,
                   [&](Stream& stream) { return machine().synchronize(stream); });
}

ENTRY int cuStreamIsCapturing(void* handle, int* status) {
  return on_stream("cuStreamIsCapturing", handle, [&](Stream&) {
    *status = machine().capturing() ? 1 : 0;
    return kSuccess;
  });
}

ENTRY int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, Machine::capture_mode());
  return kSuccess;
}

ENTRY int cuEventCreate(void** event, unsigned flags) {
  int device = 0;
  if (const int error = begin("cuEventCreate", device); error != kSuccess) return error;
  *event = (flags & kBetweenProcesses) != 0
               ? machine().make_shared_event(device)
               : machine().make_event(device, (flags & kWithoutTimes) == 0);
  return *event == nullptr ? kOutOfMemory : kSuccess;
}

ENTRY int cuEventDestroy_v2(void* event) {
  return machine().destroy_event(event);
}

ENTRY int cuEventRecord(void* event, void* handle) {
  return on_stream("cuEventRecord", handle,
                   [&](Stream& stream) { return machine().record(event, stream); });
}

ENTRY int cuEventQuery(void* event) {
  const int error = machine().begin_call("cuEventQuery");
  return error != kSuccess ? error : machine().query(event);
}

ENTRY int cuEventSynchronize(void* event) {
  const int error = machine().begin_call("cuEventSynchronize");
  return error != kSuccess ? error : machine().synchronize_event(event);
}

ENTRY int cuEventElapsedTime(float* time, void* from, void* to) {
  const int error = machine().begin_call("cuEventElapsedTime");
  return error != kSuccess ? error : machine().elapsed(time, from, to);
}

ENTRY int cuStreamWaitEvent(void* handle, void* event, unsigned) {
  return on_stream("cuStreamWaitEvent", handle,
                   [&](Stream& stream) { return machine().wait(stream, event); });
}

// -- Sharing between processes --------------------------------------------------------------------

namespace {

/// CUipcMemHandle and CUipcEventHandle
struct IpcHandle {
  std::array<char, 64> bytes;
};

int name_to_handle(int error, const SharedName& name, IpcHandle* handle) {
  if (error == kSuccess) std::memcpy(handle->bytes.data(), &name, sizeof name);
  return error;
}

SharedName name_of(const IpcHandle& handle) {
  SharedName name;
  std::memcpy(&name, handle.bytes.data(), sizeof name);
  return name;
}

}  // namespace

ENTRY int cuIpcGetMemHandle(IpcHandle* handle, std::uint64_t memory) {
  int device = 0;
  SharedName name;
  if (const int error = begin("cuIpcGetMemHandle", device); error != kSuccess) return error;
  const int error =
      machine().share_memory(reinterpret_cast<void*>(memory), name);  // NOLINT: an address
  return name_to_handle(error, name, handle);
}

ENTRY int cuIpcOpenMemHandle_v2(std::uint64_t* memory, IpcHandle handle, unsigned) {
  int device = 0;
  void* opened = nullptr;
  if (const int error = begin("cuIpcOpenMemHandle", device); error != kSuccess) return error;
  const int error = machine().open_memory(name_of(handle), device, &opened);
  *memory = reinterpret_cast<std::uint64_t>(opened);
  return error;
}

ENTRY int cuIpcCloseMemHandle(std::uint64_t memory) {
  return machine().close_memory(reinterpret_cast<void*>(memory));  // NOLINT: an address
}

ENTRY int cuIpcGetEventHandle(IpcHandle* handle, void* event) {
  SharedName name;
  return name_to_handle(machine().share_event(event, name), name, handle);
}

ENTRY int cuIpcOpenEventHandle(void** event, IpcHandle handle) {
  int device = 0;
  if (const int error = begin("cuIpcOpenEventHandle", device); error != kSuccess) return error;
  return machine().open_event(name_of(handle), device, event);
}

// -- Errors ---------------------------------------------------------------------------------------

ENTRY int cuGetErrorString(int error, const char** text) {
  *text = error == kOutOfMemory ? "out of memory" : "an error of the software device";
  return kSuccess;
}

ENTRY int cuGetErrorName(int error, const char** name) {
  *name = error == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_SOFTWARE_DEVICE";
  return kSuccess;
}

// -- Functions of the software device's own -------------------------------------------------------

ENTRY int horo_software_device_plan(const char* text) {
  return machine().plan(text) ? 0 : 1;
}

ENTRY std::size_t horo_software_device_findings(char* text, std::size_t room) {
  std::size_t count = 0;
  const auto all = machine().findings(count);
  if (room != 0) {
    const auto size = std::min(room - 1, all.size());
    std::memcpy(text, all.data(), size);
    text[size] = '\0';
  }
  return count;
}

ENTRY std::size_t horo_software_device_calls(const char* name) {
  return machine().calls(name);
}

ENTRY std::size_t horo_software_device_pending(void) {
  return machine().pending();
}

ENTRY std::size_t horo_software_device_allocated(void) {
  return machine().allocated();
}

ENTRY int horo_software_device_launch(void* handle, horo_software_device_span* spans,
                                      std::size_t count, void (*run)(void*, int), void* argument) {
  return on_stream("cuLaunchKernel", handle, [&](Stream& stream) {
    return machine().launch(stream, {spans, count},
                            [run, argument](bool broken) { run(argument, broken ? 1 : 0); });
  });
}

ENTRY int horo_software_device_current(int* on_host) {
  if (contexts.empty()) return -1;
  *on_host = machine().physical(contexts.back());
  return contexts.back();
}

ENTRY int horo_software_device_of_stream(void* handle) {
  if (contexts.empty()) return -1;
  const Stream* const stream = machine().stream_of(handle, contexts.back());
  return stream == nullptr ? -1 : stream->device;
}

ENTRY int horo_software_device_broken(void) {
  return machine().broken();
}
