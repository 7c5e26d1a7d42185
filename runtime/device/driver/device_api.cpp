// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/driver/device_api.hpp"

#include <algorithm>
#include <climits>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/device/library_in_use.hpp"

namespace horo::runtime::cuda {

namespace {

bool is_hexadecimal(char letter) {
  return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f') ||
         (letter >= 'A' && letter <= 'F');
}

/// "GPU-" and five groups of hexadecimal digits.
std::string grouped(const std::array<char, 16>& bytes) {
  std::string text = "GPU";
  for (std::size_t b = 0; b < bytes.size(); ++b) {
    const bool begins = b == 0 || b == 4 || b == 6 || b == 8 || b == 10;
    text += fmt::format("{}{:02x}", begins ? "-" : "", static_cast<unsigned char>(bytes[b]));
  }
  return text;
}

bool exists(const char* path) {
  return access(path, F_OK) == 0;
}

}  // namespace

const DeviceApi kCuda{
    .name = "CUDA",
    .library = "CUDA's driver",
    .prefix = "libcuda.so",
    .files = {"libcuda.so.1"},
    .comes_with = "it comes with NVIDIA's driver, on machines with a GPU",
    .oldest = "a driver for CUDA 10",
    .visibility = {"CUDA_VISIBLE_DEVICES"},
    .kernels = "horo-kernels.fatbin",
    .compiler = "nvcc",
    .many_arguments_from = 12010,
    .names = {.init = "cuInit",
              .device_count = "cuDeviceGetCount",
              .device_get = "cuDeviceGet",
              .retain_primary_context = "cuDevicePrimaryCtxRetain",
              .release_primary_context = "cuDevicePrimaryCtxRelease_v2",
              .push_context = "cuCtxPushCurrent_v2",
              .pop_context = "cuCtxPopCurrent_v2",
              .allocate = "cuMemAlloc_v2",
              .free = "cuMemFree_v2",
              .allocate_host = "cuMemHostAlloc",
              .free_host = "cuMemFreeHost",
              .pointer_attribute = "cuPointerGetAttribute",
              .copy = "cuMemcpyAsync",
              .make_stream = "cuStreamCreate",
              .make_stream_with_priority = "cuStreamCreateWithPriority",
              .priority_range = "cuCtxGetStreamPriorityRange",
              .destroy_stream = "cuStreamDestroy_v2",
              .stream_is_capturing = "cuStreamIsCapturing",
              .make_event = "cuEventCreate",
              .destroy_event = "cuEventDestroy_v2",
              .record = "cuEventRecord",
              .query = "cuEventQuery",
              .wait = "cuStreamWaitEvent",
              .version = "cuDriverGetVersion",
              .load_module = "cuModuleLoadData",
              .unload_module = "cuModuleUnload",
              .module_function = "cuModuleGetFunction",
              .launch = "cuLaunchKernel",
              .elapsed = {"cuEventElapsedTime", "cuEventElapsedTime_v2"},
              // CUDA 11.4 has the second version, which knows slices of a GPU (MIG).
              .device_uuid = {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"},
              .exchange_capture_mode = "cuThreadExchangeStreamCaptureMode",
              .share_memory = "cuIpcGetMemHandle",
              .open_memory = "cuIpcOpenMemHandle_v2",
              .close_memory = "cuIpcCloseMemHandle",
              .share_event = "cuIpcGetEventHandle",
              .open_event = "cuIpcOpenEventHandle",
              .error_name = "cuGetErrorName",
              .error_text = "cuGetErrorString"}};

const DeviceApi kHip{
    .name = "HIP",
    .library = "HIP's runtime",
    .prefix = "libamdhip64.so",
    .files = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
              "/opt/rocm/lib/libamdhip64.so"},
    .comes_with = "it comes with ROCm, or with a framework that is built for ROCm",
    .oldest = "ROCm 5",
    .visibility = {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
    .kernels = "horo-kernels.hsaco",
    .compiler = "hipcc",
    .many_arguments_from = INT_MAX,
    .names = {.init = "hipInit",
              .device_count = "hipGetDeviceCount",
              .device_get = "hipDeviceGet",
              // HIP's functions for contexts are deprecated, and do not give back the device that
              // hipSetDevice chose. hip_calls.cpp keeps that device instead.
              .retain_primary_context = "hipSetDevice",
              .release_primary_context = "hipSetDevice",
              .push_context = "hipSetDevice",
              .pop_context = "hipSetDevice",
              .allocate = "hipMalloc",
              .free = "hipFree",
              .allocate_host = "hipHostMalloc",
              .free_host = "hipHostFree",
              .pointer_attribute = "hipPointerGetAttribute",
              .copy = "hipMemcpyAsync",
              .make_stream = "hipStreamCreateWithFlags",
              .make_stream_with_priority = "hipStreamCreateWithPriority",
              .priority_range = "hipDeviceGetStreamPriorityRange",
              .destroy_stream = "hipStreamDestroy",
              .stream_is_capturing = "hipStreamIsCapturing",
              .make_event = "hipEventCreateWithFlags",
              .destroy_event = "hipEventDestroy",
              .record = "hipEventRecord",
              .query = "hipEventQuery",
              .wait = "hipStreamWaitEvent",
              .version = "hipRuntimeGetVersion",
              .load_module = "hipModuleLoadData",
              .unload_module = "hipModuleUnload",
              .module_function = "hipModuleGetFunction",
              .launch = "hipModuleLaunchKernel",
              .elapsed = {"hipEventElapsedTime", "hipEventElapsedTime"},
              .device_uuid = {"hipDeviceGetUuid", "hipDeviceGetUuid"},
              .exchange_capture_mode = "hipThreadExchangeStreamCaptureMode",
              .share_memory = "hipIpcGetMemHandle",
              .open_memory = "hipIpcOpenMemHandle",
              .close_memory = "hipIpcCloseMemHandle",
              .share_event = "hipIpcGetEventHandle",
              .open_event = "hipIpcOpenEventHandle",
              .error_name = "hipGetErrorName",
              .error_text = "hipGetErrorString"}};

std::string version_text(const DeviceApi& api, int version) {
  if (&api == &kHip) return fmt::format("{}.{}", version / 10'000'000, version / 100'000 % 100);
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string uuid_text(const DeviceApi& api, const std::array<char, 16>& bytes) {
  if (&api == &kCuda) return grouped(bytes);
  // ROCm's UUID is a text: "GPU-" and these 16 digits. A device that has none is "GPU-XX".
  if (std::all_of(bytes.begin(), bytes.end(), &is_hexadecimal))
    return "GPU-" + std::string(bytes.begin(), bytes.end());
  if (bytes[0] == 'X' && bytes[1] == 'X' && bytes[2] == '\0') return {};
  return grouped(bytes);
}

HostSigns look_at_host() {
  return {.cuda_loaded = !loaded_library(kCuda.prefix).empty(),
          .hip_loaded = !loaded_library(kHip.prefix).empty(),
          .nvidia = exists("/dev/nvidiactl") || exists("/proc/driver/nvidia") ||
                    exists("/dev/dxg"),  // NVIDIA's driver under Windows' Linux.
          .amd = exists("/dev/kfd")};
}

const DeviceApi& choose_api(const HostSigns& signs) {
  if (signs.cuda_loaded != signs.hip_loaded) return signs.hip_loaded ? kHip : kCuda;
  return signs.amd && !signs.nvidia ? kHip : kCuda;
}

std::string why_not_chosen(const DeviceApi& api, const HostSigns& signs) {
  const auto& other = &api == &kHip ? kCuda : kHip;
  const bool loaded = &api == &kHip ? signs.hip_loaded : signs.cuda_loaded;
  const bool other_loaded = &api == &kHip ? signs.cuda_loaded : signs.hip_loaded;
  constexpr std::string_view kRemedy = "HORO_GPU_DRIVER can name the file of the other library";
  if (other_loaded && !loaded)
    return fmt::format("this program has loaded {}, so {} is not used; {}", other.library,
                       api.library, kRemedy);
  if (&api == &kHip && !signs.amd)
    return "this host has no device of AMD that computes: there is no /dev/kfd, which the kernel's "
           "driver amdgpu makes";
  if (&api == &kHip)
    return fmt::format("this host has devices of NVIDIA and of AMD, so {} is used; {}",
                       other.library, kRemedy);
  return fmt::format("this host has devices of AMD only, so {} is used; {}", other.library,
                     kRemedy);
}

}  // namespace horo::runtime::cuda
