// SPDX-License-Identifier: Apache-2.0
// Tells memory of an accelerator from host memory.
#pragma once

#include <cstdint>

namespace horo::runtime {

/// Looks whether this process has loaded CUDA. A look takes about a microsecond, so it is made when
/// tensors are declared. Thread: any.
void look_for_accelerators();

/// cuPointerGetAttribute of CUDA's driver.
using PointerAttribute = int (*)(void* value, int attribute, std::uint64_t pointer);

/// The answer comes from this function from now on. Thread: any.
void ask_about_memory(PointerAttribute attribute);

enum class MemoryOwner : std::uint8_t {
  host,     ///< Ordinary memory, or no library knows it.
  pinned,   ///< Host memory that devices may read.
  managed,  ///< It moves to whoever uses it, a device or the host.
  device,
};

struct OwnedBy {
  MemoryOwner owner = MemoryOwner::host;
  int device = -1;  ///< -1: it is not memory of a device.
};

/// Whose memory an address belongs to. Thread: any.
OwnedBy owner_of(const void* pointer);

/// `pointer` is memory that only an accelerator can read. False where no library knows it, and
/// where CUDA was loaded after the last look. Thread: any.
bool is_device_memory(const void* pointer);

}  // namespace horo::runtime
