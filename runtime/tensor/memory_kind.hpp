// SPDX-License-Identifier: Apache-2.0
// Where the buffers of a tensor are.
#pragma once

#include <cstdint>
#include <string_view>

namespace horo::runtime {

enum class MemoryKind : std::uint8_t {
  host = 0,  ///< Memory of the process, that which ranks share included.
  device = 1,
};

inline constexpr int kMemoryKinds = 2;

/// "host memory"
constexpr std::string_view name(MemoryKind memory) {
  return memory == MemoryKind::host ? "host memory" : "device memory";
}

}  // namespace horo::runtime
