// SPDX-License-Identifier: Apache-2.0
// Stands for CUDA's driver library: a gigabyte from 2^46 on is memory of a GPU, the next one is
// managed memory.
#include <cstdint>

namespace {

constexpr std::uint64_t kDevice = std::uint64_t{1} << 46U;
constexpr std::uint64_t kSize = std::uint64_t{1} << 30U;
constexpr int kInvalidValue = 1;
constexpr int kMemoryType = 2;
constexpr unsigned kDeviceType = 2;

}  // namespace

extern "C" __attribute__((visibility("default"))) int cuPointerGetAttribute(void* value,
                                                                            int attribute,
                                                                            std::uint64_t pointer) {
  if (pointer < kDevice || pointer >= kDevice + 2 * kSize) return kInvalidValue;
  const unsigned managed = pointer >= kDevice + kSize ? 1 : 0;
  *static_cast<unsigned*>(value) = attribute == kMemoryType ? kDeviceType : managed;
  return 0;
}
