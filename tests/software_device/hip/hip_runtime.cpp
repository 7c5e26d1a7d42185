// SPDX-License-Identifier: Apache-2.0
// A stand-in for HIP's runtime over the software device: the entry points of libamdhip64.so that
// Horo loads, written from AMD's documentation of HIP (the pages that hip_calls.hpp names), with
// the same moving of bytes as under CUDA's names. It differs from CUDA's driver where HIP does: a
// thread has a device instead of a stack of contexts, and device 0 before it chooses one; copies
// have a direction; types of memory have the numbers of the planned version.
//
// HORO_SOFTWARE_HIP is that version as hipRuntimeGetVersion returns it (50221153 is ROCm 5.2).
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define ENTRY extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kInvalidDevice = 101;
constexpr int kNoDevice = 100;
constexpr int kRocm6 = 60'000'000;
constexpr int kMemoryType = 2;  // HIP_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kAnyDirection = 4;
constexpr unsigned kPortable = 1;
constexpr std::size_t kUuidDigits = 16;

struct IpcHandle {
  std::array<char, 64> bytes;
};

int version() {
  const char* const planned = std::getenv("HORO_SOFTWARE_HIP");
  return planned == nullptr ? 60'443'482 : std::atoi(planned);
}

void* pointer_of(std::uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT: an address
}

std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

}  // namespace

// The software device's functions under CUDA's names.
extern "C" {
int cuInit(unsigned flags);
int cuDeviceGetCount(int* count);
int cuDeviceGet(int* device, int ordinal);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxPushCurrent_v2(void* context);
int cuCtxPopCurrent_v2(void** context);
int cuCtxGetDevice(int* device);
int cuMemAlloc_v2(std::uint64_t* memory, std::size_t bytes);
int cuMemFree_v2(std::uint64_t memory);
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags);
int cuMemFreeHost(void* memory);
int cuPointerGetAttribute(void* value, int attribute, std::uint64_t pointer);
int cuMemcpyAsync(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream);
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority);
int cuCtxGetStreamPriorityRange(int* least, int* greatest);
int cuStreamDestroy_v2(void* stream);
int cuStreamSynchronize(void* stream);
int cuStreamIsCapturing(void* stream, int* status);
int cuEventCreate(void** event, unsigned flags);
int cuEventDestroy_v2(void* event);
int cuEventRecord(void* event, void* stream);
int cuEventQuery(void* event);
int cuThreadExchangeStreamCaptureMode(int* mode);
int cuEventElapsedTime(float* time, void* from, void* to);
int cuStreamWaitEvent(void* stream, void* event, unsigned flags);
int cuModuleLoadData(void** module, const void* image);
int cuModuleUnload(void* module);
int cuModuleGetFunction(void** function, void* module, const char* name);
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void** arguments, void** extra);
int cuIpcGetMemHandle(IpcHandle* handle, std::uint64_t memory);
int cuIpcOpenMemHandle_v2(std::uint64_t* memory, IpcHandle handle, unsigned flags);
int cuIpcCloseMemHandle(std::uint64_t memory);
int cuIpcGetEventHandle(IpcHandle* handle, void* event);
int cuIpcOpenEventHandle(void** event, IpcHandle handle);
}

namespace horo::software_device {

/// Replaces that of the software device: HIP reads its own variable, and then CUDA's.
const char* visible_list() {
  const char* const own = std::getenv("HIP_VISIBLE_DEVICES");
  return own == nullptr ? std::getenv("CUDA_VISIBLE_DEVICES") : own;
}

}  // namespace horo::software_device

namespace {

int choose(int device) {
  void* context = nullptr;
  if (const int error = cuDevicePrimaryCtxRetain(&context, device); error != kSuccess) return error;
  int now = 0;
  if (cuCtxGetDevice(&now) == kSuccess) cuCtxPopCurrent_v2(nullptr);
  return cuCtxPushCurrent_v2(context);
}

/// Any call starts the runtime and gives the thread a device.
int begin() {
  static std::atomic<bool> started{false};
  int now = 0;
  if (!started) {
    if (const int error = cuInit(0); error != kSuccess) return error;
    started = true;
  }
  return cuCtxGetDevice(&now) == kSuccess ? kSuccess : choose(0);
}

/// Runs `body` once there is a device.
template <typename Body>
int on_device(Body body) {
  const int error = begin();
  return error == kSuccess ? body() : error;
}

}  // namespace

// -- Devices --------------------------------------------------------------------------------------

/// ROCm 5.2 returns this error where there is no device.
ENTRY int hipInit(unsigned flags) {
  if (flags != 0) return kInvalidValue;
  const int error = begin();
  return error == kNoDevice ? kInvalidDevice : error;
}

ENTRY int hipRuntimeGetVersion(int* number) {
  *number = version();
  return kSuccess;
}

ENTRY int hipGetDeviceCount(int* count) {
  *count = 0;
  if (const int error = begin(); error != kSuccess) return error;
  const int error = cuDeviceGetCount(count);
  return error == kSuccess && *count == 0 ? kNoDevice : error;
}

ENTRY int hipDeviceGet(int* device, int ordinal) {
  return on_device([&] { return cuDeviceGet(device, ordinal); });
}

ENTRY int hipGetDevice(int* device) {
  return on_device([&] { return cuCtxGetDevice(device); });
}

ENTRY int hipSetDevice(int device) {
  return on_device([&] {
    int known = 0;
    return cuDeviceGet(&known, device) == kSuccess ? choose(device) : kInvalidDevice;
  });
}

/// ROCm's UUID is "GPU-" and these digits.
ENTRY int hipDeviceGetUuid(char* uuid, int device) {
  std::array<char, kUuidDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "50f7%012x", static_cast<unsigned>(device));
  std::memcpy(uuid, digits.data(), kUuidDigits);
  return kSuccess;
}

// -- Memory ---------------------------------------------------------------------------------------

ENTRY int hipMalloc(void** memory, std::size_t bytes) {
  return on_device([&] {
    std::uint64_t made = 0;
    const int error = cuMemAlloc_v2(&made, bytes);
    *memory = pointer_of(made);
    return error;
  });
}

ENTRY int hipFree(void* memory) {
  return on_device([&] { return cuMemFree_v2(address_of(memory)); });
}

ENTRY int hipHostMalloc(void** memory, std::size_t bytes, unsigned flags) {
  if ((flags & ~kPortable) != 0) return kInvalidValue;
  return on_device([&] { return cuMemHostAlloc(memory, bytes, flags); });
}

ENTRY int hipHostFree(void* memory) {
  return on_device([&] { return cuMemFreeHost(memory); });
}

ENTRY int hipPointerGetAttribute(void* value, int attribute, void* pointer) {
  return on_device([&] {
    const int error = cuPointerGetAttribute(value, attribute, address_of(pointer));
    if (error != kSuccess || attribute != kMemoryType || version() >= kRocm6) return error;
    unsigned type = 0;
    std::memcpy(&type, value, sizeof type);
    --type;  // hipMemoryTypeHost is 0 and hipMemoryTypeDevice 1.
    std::memcpy(value, &type, sizeof type);
    return error;
  });
}

ENTRY int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int direction,
                         void* stream) {
  if (direction != kAnyDirection) return kInvalidValue;
  return on_device([&] { return cuMemcpyAsync(address_of(to), address_of(from), bytes, stream); });
}

// -- Streams and events ---------------------------------------------------------------------------

ENTRY int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  return on_device([&] { return cuStreamCreate(stream, flags); });
}

ENTRY int hipStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return on_device([&] { return cuStreamCreateWithPriority(stream, flags, priority); });
}

ENTRY int hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return on_device([&] { return cuCtxGetStreamPriorityRange(least, greatest); });
}

ENTRY int hipStreamDestroy(void* stream) {
  return on_device([&] { return cuStreamDestroy_v2(stream); });
}

ENTRY int hipStreamSynchronize(void* stream) {
  return on_device([&] { return cuStreamSynchronize(stream); });
}

ENTRY int hipStreamIsCapturing(void* stream, int* status) {
  return on_device([&] { return cuStreamIsCapturing(stream, status); });
}

ENTRY int hipEventCreateWithFlags(void** event, unsigned flags) {
  return on_device([&] { return cuEventCreate(event, flags); });
}

ENTRY int hipEventDestroy(void* event) {
  return on_device([&] { return cuEventDestroy_v2(event); });
}

ENTRY int hipEventRecord(void* event, void* stream) {
  return on_device([&] { return cuEventRecord(event, stream); });
}

ENTRY int hipEventElapsedTime(float* time, void* from, void* to) {
  return on_device([&] { return cuEventElapsedTime(time, from, to); });
}

ENTRY int hipThreadExchangeStreamCaptureMode(int* mode) {
  return cuThreadExchangeStreamCaptureMode(mode);
}

ENTRY int hipEventQuery(void* event) {
  return on_device([&] { return cuEventQuery(event); });
}

ENTRY int hipStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return on_device([&] { return cuStreamWaitEvent(stream, event, flags); });
}

// -- Kernels --------------------------------------------------------------------------------------

ENTRY int hipModuleLoadData(void** module, const void* image) {
  return on_device([&] { return cuModuleLoadData(module, image); });
}

ENTRY int hipModuleUnload(void* module) {
  return on_device([&] { return cuModuleUnload(module); });
}

ENTRY int hipModuleGetFunction(void** function, void* module, const char* name) {
  return on_device([&] { return cuModuleGetFunction(function, module, name); });
}

ENTRY int hipModuleLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y, unsigned block_z,
                                unsigned shared_bytes, void* stream, void** arguments,
                                void** extra) {
  return on_device([&] {
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                          stream, arguments, extra);
  });
}

// -- Sharing between processes --------------------------------------------------------------------

ENTRY int hipIpcGetMemHandle(IpcHandle* handle, void* memory) {
  return on_device([&] { return cuIpcGetMemHandle(handle, address_of(memory)); });
}

/// The flag must be hipIpcMemLazyEnablePeerAccess, which was 0 in ROCm 5.2 and is 1 now.
ENTRY int hipIpcOpenMemHandle(void** memory, IpcHandle handle, unsigned flags) {
  if (flags != (version() < kRocm6 ? 0U : 1U)) return kInvalidValue;
  return on_device([&] {
    std::uint64_t opened = 0;
    const int error = cuIpcOpenMemHandle_v2(&opened, handle, flags);
    *memory = pointer_of(opened);
    return error;
  });
}

ENTRY int hipIpcCloseMemHandle(void* memory) {
  return on_device([&] { return cuIpcCloseMemHandle(address_of(memory)); });
}

ENTRY int hipIpcGetEventHandle(IpcHandle* handle, void* event) {
  return on_device([&] { return cuIpcGetEventHandle(handle, event); });
}

ENTRY int hipIpcOpenEventHandle(void** event, IpcHandle handle) {
  return on_device([&] { return cuIpcOpenEventHandle(event, handle); });
}

// -- Errors ---------------------------------------------------------------------------------------

ENTRY const char* hipGetErrorName(int error) {
  return error == 2 ? "hipErrorOutOfMemory" : "hipErrorOfSoftwareDevice";
}

ENTRY const char* hipGetErrorString(int error) {
  return error == 2 ? "out of memory" : "an error of the software device";
}
