// SPDX-License-Identifier: Apache-2.0
// The functions of CUDA's driver that are used here, found at run time, as NVIDIA documents them.
// The numbers below are part of the driver's binary interface and have been the same since CUDA 4.
// AMD's HIP runtime is adapted to these functions (hip_calls.hpp); device_api.hpp has all names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "runtime/device/driver/device_api.hpp"
#include "runtime/device/stream.hpp"

namespace horo::runtime::cuda {

using Code = int;  ///< CUresult
using Address = std::uint64_t;
using Context = void*;
using Module = void*;
using Function = void*;

inline constexpr Code kSuccess = 0;
inline constexpr Code kNotReady = 600;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventWithTimes = 0;
inline constexpr unsigned kEventWithoutTimes = 2;
inline constexpr unsigned kHostMemoryOfAllContexts = 1;
inline constexpr int kRelaxedCapture = 2;
inline constexpr int kMemoryType = 2;
inline constexpr int kIsManaged = 8;
inline constexpr int kDeviceOrdinal = 9;
inline constexpr unsigned kDeviceType = 2;

/// CUipcMemHandle and CUipcEventHandle
struct IpcHandle {
  std::array<char, 64> bytes{};
};

struct Driver {
  const DeviceApi* api;
  Code (*init)(unsigned flags);
  Code (*device_count)(int* count);
  Code (*device_get)(int* device, int ordinal);
  Code (*retain_primary_context)(Context* context, int device);
  Code (*release_primary_context)(int device);
  Code (*push_context)(Context context);
  Code (*pop_context)(Context* context);
  Code (*allocate)(Address* memory, std::size_t bytes);
  Code (*free)(Address memory);
  Code (*allocate_host)(void** memory, std::size_t bytes, unsigned flags);
  Code (*free_host)(void* memory);
  Code (*pointer_attribute)(void* value, int attribute, Address pointer);
  Code (*copy)(Address to, Address from, std::size_t bytes, StreamHandle stream);
  Code (*make_stream)(StreamHandle* stream, unsigned flags);
  Code (*make_stream_with_priority)(StreamHandle* stream, unsigned flags, int priority);
  Code (*priority_range)(int* least, int* greatest);
  Code (*destroy_stream)(StreamHandle stream);
  Code (*stream_is_capturing)(StreamHandle stream, int* capturing);
  Code (*make_event)(EventHandle* event, unsigned flags);
  Code (*destroy_event)(EventHandle event);
  Code (*record)(EventHandle event, StreamHandle stream);
  Code (*query)(EventHandle event);
  Code (*wait)(StreamHandle stream, EventHandle event, unsigned flags);
  Code (*version)(int* version);
  Code (*load_module)(Module* module, const void* image);
  Code (*unload_module)(Module module);
  Code (*module_function)(Function* function, Module module, const char* name);
  Code (*launch)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                 StreamHandle stream, void** arguments, void** extra);
  Code (*device_uuid)(char* uuid, int device);  ///< Null in drivers that have none.
  /// In milliseconds. Null in drivers that have none.
  Code (*elapsed)(float* time, EventHandle from, EventHandle to);
  /// Sets the calling thread's mode, and returns the one before. Null in drivers that have none.
  Code (*exchange_capture_mode)(int* mode);
  // Null where the driver cannot share between processes.
  Code (*share_memory)(IpcHandle* handle, Address memory);
  Code (*open_memory)(Address* memory, IpcHandle handle, unsigned flags);
  Code (*close_memory)(Address memory);
  Code (*share_event)(IpcHandle* handle, EventHandle event);
  Code (*open_event)(EventHandle* event, IpcHandle handle);
  Code (*error_name)(Code code, const char** name);
  Code (*error_text)(Code code, const char** text);

  /// The driver's own names of these functions.
  const DriverNames& names() const { return api->names; }

  /// Fails: out_of_memory, io; with the name of the call and the driver's words.
  Status status(Code code, std::string_view call) const;
};

/// Stands for a file: that of the library which choose_api() names.
inline constexpr const char* kAutomatic = "auto";

/// Loads CUDA's driver or HIP's runtime from `file` and initialises it; load_driver() does so once.
/// It takes no lock. Blocks and fails: as load_driver.
Result<std::unique_ptr<Driver>> start_driver(const std::string& file);

/// Loads CUDA's driver or HIP's runtime from `file` and initialises it, once per process: when one
/// is loaded already, `file` does not matter. Thread: any. Blocks: while the driver starts, which
/// may take a second. Fails: unavailable (no such file, a function is missing, no device; says
/// which).
Result<const Driver*> load_driver(const std::string& file);

/// Null when load_driver() has not succeeded. Thread: any.
const Driver* loaded_driver();

}  // namespace horo::runtime::cuda
