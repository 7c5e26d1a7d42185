// SPDX-License-Identifier: Apache-2.0
// The libraries by which devices are reached: CUDA's driver, and HIP's runtime for AMD's devices.
// One table of entry points for each; cuda_driver.hpp has the functions behind the names.
//
// NVIDIA's names with a version are part of the driver's binary interface. AMD's facts come from
// the documentation of HIP:
//   https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hip_runtime_api_reference.html
//   https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html
//   https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html
// and from hip_runtime_api.h of ROCm 5.2, which Debian has as libamdhip64-dev.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace horo::runtime::cuda {

/// The symbol of each function of Driver, which its errors name, too.
struct DriverNames {
  const char* init;
  const char* device_count;
  const char* device_get;
  const char* retain_primary_context;
  const char* release_primary_context;
  const char* push_context;
  const char* pop_context;
  const char* allocate;
  const char* free;
  const char* allocate_host;
  const char* free_host;
  const char* pointer_attribute;
  const char* copy;
  const char* make_stream;
  const char* make_stream_with_priority;
  const char* priority_range;
  const char* destroy_stream;
  const char* stream_is_capturing;
  const char* make_event;
  const char* destroy_event;
  const char* record;
  const char* query;
  const char* wait;
  const char* version;
  const char* load_module;
  const char* unload_module;
  const char* module_function;
  const char* launch;
  std::array<const char*, 2> elapsed;  ///< Both have the same arguments. A driver may have neither.
  std::array<const char*, 2> device_uuid;  ///< The newer one first. A driver may have neither.
  const char* exchange_capture_mode;       ///< A driver may have none.
  // A driver may have none of these.
  const char* share_memory;
  const char* open_memory;
  const char* close_memory;
  const char* share_event;
  const char* open_event;
  const char* error_name;
  const char* error_text;
};

/// One library. There are two objects of this type, and code compares their addresses.
struct DeviceApi {
  std::string_view name;                  ///< "CUDA" or "HIP"
  std::string_view library;               ///< As messages call it.
  std::string_view prefix;                ///< With which the names of its files begin.
  std::array<const char*, 5> files;       ///< They are tried in this order.
  std::string_view comes_with;            ///< The place where a user finds it.
  std::string_view oldest;                ///< The oldest one that has all functions.
  std::array<const char*, 3> visibility;  ///< Variables that hide devices from a process.
  std::string_view kernels;               ///< The file of this build's kernels.
  std::string_view compiler;              ///< It makes that file.
  int many_arguments_from;  ///< The version from which a launch takes 32,764 bytes of arguments.
  DriverNames names;
};

extern const DeviceApi kCuda;
extern const DeviceApi kHip;

/// "12.1" for 12010 of CUDA's driver, "6.4" for 60443482 of HIP's runtime. Pure.
std::string version_text(const DeviceApi& api, int version);

/// A device's name in all processes from the bytes that the driver returns, as nvidia-smi or ROCm
/// write it; empty: these bytes name no single device. Pure.
std::string uuid_text(const DeviceApi& api, const std::array<char, 16>& bytes);

/// The facts from which the library follows if the user names no file.
struct HostSigns {
  bool cuda_loaded = false;  ///< The process has loaded CUDA's driver.
  bool hip_loaded = false;   ///< The process has loaded HIP's runtime.
  bool nvidia = false;       ///< The kernel has a driver for NVIDIA's devices.
  bool amd = false;          ///< The kernel has a driver for AMD's devices that compute.
};

/// Blocks: no.
HostSigns look_at_host();

/// The library that the program uses already; else the one for the devices of this host; CUDA's
/// driver where both or neither could be meant. Pure.
const DeviceApi& choose_api(const HostSigns& signs);

/// The reason why choose_api() has not chosen `api`. Pure.
std::string why_not_chosen(const DeviceApi& api, const HostSigns& signs);

}  // namespace horo::runtime::cuda
