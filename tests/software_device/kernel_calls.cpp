// SPDX-License-Identifier: Apache-2.0
// The driver's entry points for kernels. A module of the software device is any image of Horo's
// kernels; what runs are the same kernels, compiled for the host, as operations of a stream.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/device/kernels/host_kernels.hpp"
#include "tests/software_device/machine.hpp"
#include "tests/software_device/software_device.h"

#define ENTRY extern "C" __attribute__((visibility("default")))

namespace {

using horo::runtime::find_host_kernel;
using horo::runtime::HostKernel;
using horo::runtime::KernelMemory;
using horo::software_device::kInvalidHandle;
using horo::software_device::kInvalidValue;
using horo::software_device::kSuccess;
using horo::software_device::Machine;

constexpr int kInvalidImage = 200;
constexpr int kNotFound = 500;
constexpr unsigned kBlockThreads = 256;
constexpr std::uint32_t kFatbinMagic = 0xba55ed50;
constexpr std::string_view kOwnImage = "horo software kernels";

/// A launch: a copy of the arguments, in which addresses become those of the device's threads.
struct Launch {
  const HostKernel* kernel = nullptr;
  unsigned blocks = 0;
  std::vector<std::max_align_t> arguments;
  std::vector<KernelMemory> memory;
  std::vector<horo_software_device_span> spans;

  void run() {
    for (std::size_t m = 0; m < memory.size(); ++m) *memory[m].pointer = spans[m].alias;
    kernel->run(arguments.data(), blocks);
  }
};

int module_handle = 0;

}  // namespace

ENTRY int cuModuleLoadData(void** module, const void* image) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  const bool own =
      std::strncmp(static_cast<const char*>(image), kOwnImage.data(), kOwnImage.size()) == 0;
  if (!own && magic != kFatbinMagic) return kInvalidImage;
  *module = &module_handle;
  return Machine::instance().begin_call("cuModuleLoadData");
}

ENTRY int cuModuleUnload(void* module) {
  return module == &module_handle ? kSuccess : kInvalidHandle;
}

ENTRY int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (module != &module_handle) return kInvalidHandle;
  const auto* const kernel = find_host_kernel(name);
  *function = const_cast<HostKernel*>(kernel);
  return kernel == nullptr ? kNotFound : kSuccess;
}

ENTRY int cuLaunchKernel(void* function, unsigned blocks, unsigned grid_y, unsigned grid_z,
                         unsigned threads, unsigned block_y, unsigned block_z, unsigned,
                         void* stream, void** arguments, void**) {
  const auto* const kernel = static_cast<const HostKernel*>(function);
  if (kernel == nullptr) return kInvalidHandle;
  if (blocks == 0 || threads != kBlockThreads || grid_y * grid_z * block_y * block_z != 1)
    return kInvalidValue;
  auto launch = std::make_unique<Launch>();
  launch->kernel = kernel;
  launch->blocks = blocks;
  launch->arguments.resize(kernel->argument_bytes / sizeof(std::max_align_t) + 1);
  std::memcpy(launch->arguments.data(), arguments[0], kernel->argument_bytes);
  launch->memory = kernel->memory(launch->arguments.data(), blocks);
  for (const auto& used : launch->memory)
    launch->spans.push_back({*used.pointer, used.bytes, used.writes ? 1 : 0, nullptr});
  const auto run = [](void* argument, int broken) {
    const std::unique_ptr<Launch> own(static_cast<Launch*>(argument));
    if (broken == 0) own->run();
  };
  const int error = horo_software_device_launch(stream, launch->spans.data(), launch->spans.size(),
                                                run, launch.get());
  if (error == kSuccess) static_cast<void>(launch.release());
  return error;
}
