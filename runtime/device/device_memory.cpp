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
constexpr int kOrdinal = 9;          // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr unsigned kDeviceType = 2;  // CU_MEMORYTYPE_DEVICE

std::atomic<PointerAttribute> get_attribute{nullptr};

bool is_managed(PointerAttribute get, std::uint64_t address) {
  unsigned managed = 0;
  return get(&managed, kIsManaged, address) == kSuccess && (managed & 0xffU) != 0;
}

}  // namespace

void look_for_accelerators() {
  if (get_attribute.load(std::memory_order_relaxed) != nullptr) return;
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (driver == nullptr) return;
  // The handle stays open: the function must not vanish.
  ask_about_memory(reinterpret_cast<PointerAttribute>(dlsym(driver, "cuPointerGetAttribute")));
}

void ask_about_memory(PointerAttribute attribute) {
  get_attribute.store(attribute, std::memory_order_relaxed);
}

OwnedBy owner_of(const void* pointer) {
  const auto get = get_attribute.load(std::memory_order_relaxed);
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  unsigned type = 0;
  if (get == nullptr || get(&type, kMemoryType, address) != kSuccess) return {};
  if (is_managed(get, address)) return {.owner = MemoryOwner::managed};
  int ordinal = 0;
  if (type != kDeviceType || get(&ordinal, kOrdinal, address) != kSuccess)
    return {.owner = MemoryOwner::pinned};
  return {.owner = MemoryOwner::device, .device = ordinal};
}

bool is_device_memory(const void* pointer) {
  const auto get = get_attribute.load(std::memory_order_relaxed);
  if (get == nullptr || pointer == nullptr) [[likely]]
    return false;
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  unsigned type = 0;
  if (get(&type, kMemoryType, address) != kSuccess || type != kDeviceType) return false;
  // Managed memory moves to the host when the host reads it.
  return !is_managed(get, address);
}

}  // namespace horo::runtime
