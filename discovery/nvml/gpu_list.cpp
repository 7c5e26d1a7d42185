// SPDX-License-Identifier: Apache-2.0
#include "discovery/nvml/gpu_list.hpp"

#include <algorithm>
#include <array>

#include "discovery/nvml/nvml_library.hpp"

namespace horo::discovery {

namespace {

constexpr unsigned kMostLinks = 36;
constexpr unsigned kMostProcesses = 512;
constexpr int kUncorrected = 1;
constexpr int kSinceDriverStart = 0;

std::string text_of(auto call) {
  std::array<char, 128> text{};
  return call(text.data(), static_cast<unsigned>(text.size())) == nvml::kSuccess ? text.data() : "";
}

std::string problem_of(const nvml::NvmlFunctions& library, nvml::Code code) {
  if (code == nvml::kSuccess) return "";
  if (code == nvml::kLost)
    return "it has fallen off the bus or was reset; the kernel's log has its Xid";
  return library.error_text(code);
}

void read_slices(const nvml::NvmlFunctions& library, nvml::Device device, Gpu& gpu) {
  unsigned now = 0;
  unsigned pending = 0;
  unsigned most = 0;
  if (library.mig_mode == nullptr || library.mig_count == nullptr || library.mig_device == nullptr)
    return;
  if (library.mig_mode(device, &now, &pending) != nvml::kSuccess || now == 0) return;
  gpu.sliced = true;
  if (library.mig_count(device, &most) != nvml::kSuccess) return;
  for (unsigned i = 0; i < most; ++i) {
    nvml::Device slice = nullptr;
    if (library.mig_device(device, i, &slice) != nvml::kSuccess) continue;
    gpu.slices.push_back(
        text_of([&](char* text, unsigned room) { return library.uuid(slice, text, room); }));
  }
  if (gpu.slices.empty())
    gpu.problem = "it is in MIG mode and has no slice; make one with 'nvidia-smi mig'";
}

void read_links(const nvml::NvmlFunctions& library, nvml::Device device, Gpu& gpu) {
  if (library.link_state == nullptr || library.link_peer == nullptr) return;
  for (unsigned link = 0; link < kMostLinks; ++link) {
    int active = 0;
    nvml::Pci peer{};
    if (library.link_state(device, link, &active) != nvml::kSuccess) return;
    if (active == 0 || library.link_peer(device, link, &peer) != nvml::kSuccess) continue;
    const std::string address = peer.address;
    const auto known = std::find_if(gpu.links.begin(), gpu.links.end(),
                                    [&](const GpuLinks& links) { return links.peer == address; });
    if (known == gpu.links.end()) {
      gpu.links.push_back({.peer = address, .links = 1});
    } else {
      ++known->links;
    }
  }
}

void read_use(const nvml::NvmlFunctions& library, nvml::Device device, Gpu& gpu) {
  nvml::Use use{};
  if (library.use != nullptr && library.use(device, &use) == nvml::kSuccess)
    gpu.busy = static_cast<int>(use.processor);
  unsigned celsius = 0;
  if (library.temperature != nullptr &&
      library.temperature(device, nvml::kOfTheChip, &celsius) == nvml::kSuccess)
    gpu.celsius = static_cast<int>(celsius);
}

void read_processes(const nvml::NvmlFunctions& library, nvml::Device device, Gpu& gpu) {
  if (library.processes == nullptr) return;
  // Some drivers write entries that are longer than documented, so there is room for twice as many.
  std::vector<nvml::ComputeProcess> processes(std::size_t{2} * kMostProcesses);
  unsigned count = kMostProcesses;
  if (library.processes(device, &count, processes.data()) != nvml::kSuccess) return;
  for (unsigned i = 0; i < std::min(count, kMostProcesses); ++i)
    gpu.processes.push_back(static_cast<int>(processes[i].pid));
}

void read_cpus(const nvml::NvmlFunctions& library, nvml::Device device, Gpu& gpu) {
  constexpr unsigned kWords = 128;  // 8192 hardware threads.
  constexpr unsigned kBits = 64;
  std::array<unsigned long, kWords> set{};
  if (library.cpu_affinity == nullptr ||
      library.cpu_affinity(device, kWords, set.data()) != nvml::kSuccess)
    return;
  for (unsigned cpu = 0; cpu < kWords * kBits; ++cpu) {
    if ((set.at(cpu / kBits) >> cpu % kBits & 1U) != 0) gpu.cpus.push_back(static_cast<int>(cpu));
  }
}

Gpu read_gpu(const nvml::NvmlFunctions& library, unsigned index) {
  Gpu gpu{.index = static_cast<int>(index)};
  nvml::Device device = nullptr;
  gpu.problem = problem_of(library, library.device(index, &device));
  if (!gpu.problem.empty()) return gpu;
  gpu.name = text_of([&](char* text, unsigned room) { return library.name(device, text, room); });
  gpu.uuid = text_of([&](char* text, unsigned room) { return library.uuid(device, text, room); });
  nvml::Pci pci{};
  if (library.pci(device, &pci) == nvml::kSuccess) gpu.pci = pci.address;
  nvml::Memory memory{};
  gpu.problem = problem_of(library, library.memory(device, &memory));
  gpu.memory = memory.total;
  gpu.used = memory.used;
  read_use(library, device, gpu);
  read_processes(library, device, gpu);
  read_cpus(library, device, gpu);
  unsigned long long errors = 0;
  if (library.ecc_errors != nullptr &&
      library.ecc_errors(device, kUncorrected, kSinceDriverStart, &errors) == nvml::kSuccess)
    gpu.uncorrected = errors;
  if (gpu.problem.empty()) read_slices(library, device, gpu);
  read_links(library, device, gpu);
  return gpu;
}

/// Links lead to addresses; those of GPUs become their numbers.
void name_peers(std::vector<Gpu>& gpus) {
  for (auto& gpu : gpus) {
    for (auto& links : gpu.links) {
      const auto peer = std::find_if(gpus.begin(), gpus.end(),
                                     [&](const Gpu& other) { return other.pci == links.peer; });
      if (peer != gpus.end()) links.peer = fmt::format("GPU {}", peer->index);
    }
  }
}

}  // namespace

Result<GpuList> list_gpus() {
  HORO_TRY(const auto* library, nvml::load());
  GpuList list;
  list.driver =
      text_of([&](char* text, unsigned room) { return library->driver_version(text, room); });
  HORO_TRY_STATUS(
      library->status(library->cuda_version(&list.cuda), "nvmlSystemGetCudaDriverVersion"));
  unsigned count = 0;
  HORO_TRY_STATUS(library->status(library->count(&count), "nvmlDeviceGetCount"));
  for (unsigned i = 0; i < count; ++i) list.gpus.push_back(read_gpu(*library, i));
  name_peers(list.gpus);
  return list;
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string describe_problem(const Gpu& gpu) {
  return fmt::format("GPU {}{} cannot be used: {}", gpu.index,
                     gpu.uuid.empty() ? "" : fmt::format(" ({})", gpu.uuid), gpu.problem);
}

}  // namespace horo::discovery
