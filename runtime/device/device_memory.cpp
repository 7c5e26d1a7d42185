// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/device_memory.hpp"

#include <atomic>
#include <cstdint>
#include <dlfcn.h>

namespace horo::runtime {

namespace {

// From cuda.h, whose numbers are part of the driver's ABI.
constexpr int kSuccess = 0;
constexpr int kMemoryType = 2;       // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kIsManaged = 8;        // CU_POINTER_ATTRIBUTE_IS_MANAGED
constexpr unsigned kDeviceType = 2;  // CU_MEMORYTYPE_DEVICE

using GetAttribute = int (*)(void* value, int attribute, std::uint64_t pointer);

std::atomic<GetAttribute> get_attribute{nullptr};

}  // namespace

void look_for_accelerators() {
  if (get_attribute.load(std::memory_order_relaxed) != nullptr) return;
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (driver == nullptr) return;
  // The handle stays open: the function must not vanish.
  get_attribute.store(reinterpret_cast<GetAttribute>(dlsym(driver, "cuPointerGetAttribute")),
                      std::memory_order_relaxed);
}

bool is_device_memory(const void* pointer) {
  const auto get = get_attribute.load(std::memory_order_relaxed);
  if (get == nullptr || pointer == nullptr) [[likely]]
    return false;
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  unsigned type = 0;
  if (get(&type, kMemoryType, address) != kSuccess || type != kDeviceType) return false;
  // Managed memory moves to the host when the host reads it.
  unsigned managed = 0;
  return get(&managed, kIsManaged, address) != kSuccess || (managed & 0xffU) == 0;
}

}  // namespace horo::runtime
