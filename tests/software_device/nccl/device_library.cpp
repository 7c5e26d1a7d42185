// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/nccl/device_library.hpp"

#include <dlfcn.h>
#include <string>
#include <type_traits>

namespace horo::software_nccl {

namespace {

const DeviceLibrary* find_library() {
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&device_library), &own) == 0) return nullptr;
  const std::string path = own.dli_fname;
  const auto folder = path.substr(0, path.rfind('/') + 1);
  void* library = nullptr;
  for (const auto* const name : {"horo-software-device.so", "horo-software-hip.so"}) {
    if (library == nullptr)
      library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  }
  if (library == nullptr) return nullptr;
  static DeviceLibrary functions;
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  const bool found = find(functions.launch, "horo_software_device_launch") &&
                     find(functions.current, "horo_software_device_current") &&
                     find(functions.of_stream, "horo_software_device_of_stream") &&
                     find(functions.broken, "horo_software_device_broken");
  return found ? &functions : nullptr;
}

}  // namespace

const DeviceLibrary* device_library() {
  static const auto* const library = find_library();
  return library;
}

}  // namespace horo::software_nccl
