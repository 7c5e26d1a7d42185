// SPDX-License-Identifier: Apache-2.0
// Backends that are loaded on demand, so that libhoro needs none of their libraries. A
// module is horo-backend-NAME.so in the folder horo/ beside libhoro.so; it exports one symbol, a
// ModuleEntry, and hides everything else, as libhoro does: two Gloos or two MPIs in one process
// never share symbols. Libraries that a machine lacks may lie in horo/carried.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "runtime/backends/communicator.hpp"
#include "runtime/backends/exchange.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/device/device.hpp"

namespace horo::runtime {

/// The functions of a module; null for each that it does not have. Module and libhoro are built
/// together and share C++ types: `magic`, `version` and `layout` are compared before anything else
/// is used.
struct ModuleEntry {
  std::uint32_t magic;
  std::uint32_t version;  ///< version_code()
  std::uint32_t layout;   ///< kModuleLayout
  const char* name;
  /// Whether it can work in this process, without making anything. Fails: unavailable (no device,
  /// a library that is missing; says which).
  Status (*probe)();
  /// Connects the members. Other backends of the module may be at work in another thread, unless
  /// the job starts. Blocks: until all have connected. Fails: as the backend; never throws.
  Result<std::unique_ptr<Backend>> (*make)(const Communicator& communicator);
  Result<std::unique_ptr<Exchange>> (*exchange)();
  Result<std::unique_ptr<Device>> (*open_device)(int index);
};

inline constexpr std::uint32_t kModuleMagic = 0x4f524f48;  // "HORO"
inline constexpr std::uint32_t kModuleLayout =
    sizeof(ModuleEntry) + 64 * sizeof(Communicator) + 4096 * sizeof(Bucket) + 65536 * sizeof(Part);
inline constexpr const char* kModuleSymbol = "horo_backend_module";

/// The folder horo/ beside the library or program that holds this code.
std::string module_folder();

/// The entry of a module, which stays loaded until the process ends: its library may have threads.
/// Thread: any. Fails: not_found (no such file), unavailable (a library that it needs is missing or
/// does not fit; names it and the package that has it), version_mismatch, protocol (not a module).
Result<const ModuleEntry*> load_module(std::string_view name, const std::string& folder);

/// load_module() and probe(). Fails: as both.
Result<const ModuleEntry*> load_usable_module(std::string_view name, const std::string& folder);

}  // namespace horo::runtime

/// Defines the one symbol of a module from the designated fields given.
#define HORO_BACKEND_MODULE(...)                             \
  extern "C" __attribute__((visibility("default")))          \
  const ::horo::runtime::ModuleEntry horo_backend_module = { \
      .magic = ::horo::runtime::kModuleMagic,                \
      .version = HORO_VERSION_CODE,                          \
      .layout = ::horo::runtime::kModuleLayout,              \
      __VA_ARGS__}
