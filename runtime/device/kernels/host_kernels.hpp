// SPDX-License-Identifier: Apache-2.0
// The kernels compiled for the host, where tests and the software device run them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace horo::runtime {

/// Memory that a kernel uses: `pointer` is the place of its address in the kernel's arguments.
struct KernelMemory {
  const void** pointer = nullptr;
  std::uint64_t bytes = 0;
  bool writes = false;
};

struct HostKernel {
  std::string_view name;
  std::size_t argument_bytes = 0;
  /// Runs all threads of all blocks, one after another.
  void (*run)(const void* arguments, unsigned blocks) = nullptr;
  std::vector<KernelMemory> (*memory)(void* arguments, unsigned blocks) = nullptr;
};

/// Null: there is no such kernel. Thread: any.
const HostKernel* find_host_kernel(std::string_view name);

}  // namespace horo::runtime
