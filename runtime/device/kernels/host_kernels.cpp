// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/kernels/host_kernels.hpp"

#include <array>
#include <memory>
#include <type_traits>

#include "runtime/device/kernels/kernel_list.hpp"

namespace horo::runtime {

namespace {

using namespace device_code;  // NOLINT(google-build-using-namespace): the list's names are of it

template <typename Kernel>
void run(const void* memory, unsigned blocks) {
  const auto& arguments = *static_cast<const typename Kernel::Arguments*>(memory);
  const auto shared = std::make_unique<typename Kernel::Shared>();
  for (unsigned block = 0; block < blocks; ++block) {
    for (int phase = 0; phase < Kernel::kPhases; ++phase) {
      for (unsigned thread = 0; thread < kThreads; ++thread)
        Kernel::phase(phase, arguments, *shared, {block, blocks, thread});
    }
  }
}

/// `pointer` is an object's member of any pointer type.
template <typename T>
KernelMemory uses(T*& pointer, std::uint64_t bytes) {
  return {static_cast<const void**>(static_cast<void*>(&pointer)), bytes, !std::is_const_v<T>};
}

template <typename T>
KernelMemory reads(T*& pointer, std::uint64_t bytes) {
  return {static_cast<const void**>(static_cast<void*>(&pointer)), bytes, false};
}

template <int kRows>
std::uint64_t last_element(const TensorTable<kRows>& table, int count) {
  const auto last = static_cast<std::size_t>(count) - 1;
  return table.offset[last] + table.elements[last];
}

template <typename Kernel, int kRows>
std::vector<KernelMemory> list(CopyArguments<kRows>& how, unsigned) {
  std::vector<KernelMemory> all;
  const auto elements = last_element(how.table, how.count) - how.table.offset[0];
  const bool out = how.to_tensors != 0;
  // A buffer's first bytes may belong to the launch before; its address is that of its beginning.
  const auto buffer = (out ? Kernel::kFromBytes : Kernel::kToBytes);
  all.push_back(out ? reads(how.buffer, (how.table.offset[0] + elements) * buffer)
                    : uses(how.buffer, (how.table.offset[0] + elements) * buffer));
  for (int t = 0; t < how.count; ++t) {
    const auto bytes = how.table.elements[t] * (out ? Kernel::kToBytes : Kernel::kFromBytes);
    all.push_back(out ? uses(how.table.memory[t], bytes) : reads(how.table.memory[t], bytes));
  }
  return all;
}

template <typename Kernel, int kRows>
std::vector<KernelMemory> list(SumArguments<kRows>& how, unsigned) {
  std::vector<KernelMemory> all;
  for (int r = 0; r < how.inputs; ++r)
    all.push_back(uses(how.in[r], last_element(how.table, how.count) * Kernel::kBytes));
  for (int t = 0; t < how.count; ++t)
    all.push_back(uses(how.table.memory[t], how.table.elements[t] * Kernel::kBytes));
  return all;
}

template <typename Kernel>
std::vector<KernelMemory> list(DotsArguments& how, unsigned blocks) {
  const auto bytes = how.elements * Kernel::kBytes;
  return {uses(how.a, bytes), uses(how.b, bytes),
          uses(how.partial, blocks * kProducts * sizeof(double))};
}

template <typename Kernel>
std::vector<KernelMemory> list(FinishDotsArguments& how, unsigned) {
  return {uses(how.partial, static_cast<std::uint64_t>(how.blocks) * kProducts * sizeof(double)),
          uses(how.products, kProducts * sizeof(double))};
}

template <typename Kernel>
std::vector<KernelMemory> list(CombineArguments& how, unsigned) {
  const auto bytes = how.elements * Kernel::kBytes;
  return {uses(how.a, bytes), uses(how.b, bytes), uses(how.out, bytes),
          uses(how.products, kProducts * sizeof(double))};
}

template <typename Kernel>
std::vector<KernelMemory> memory(void* arguments, unsigned blocks) {
  return list<Kernel>(*static_cast<typename Kernel::Arguments*>(arguments), blocks);
}

#define HORO_HOST_KERNEL(name, ...) \
  HostKernel{#name, sizeof(__VA_ARGS__::Arguments), &run<__VA_ARGS__>, &memory<__VA_ARGS__>},

const std::array kKernels = {HORO_KERNELS(HORO_HOST_KERNEL)};

}  // namespace

const HostKernel* find_host_kernel(std::string_view name) {
  for (const auto& kernel : kKernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

}  // namespace horo::runtime
