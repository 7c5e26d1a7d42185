// SPDX-License-Identifier: Apache-2.0
#include "discovery/gpu_places.hpp"

#include <algorithm>
#include <charconv>

#include "discovery/amd_gpus.hpp"
#include "discovery/cpu_list.hpp"
#include "discovery/gpus.hpp"
#include "discovery/text_file.hpp"

namespace horo::discovery {

namespace {

/// "GPU-6fd0…" behind "GPU UUID:" in the driver's description; empty where it has none yet.
std::string uuid_in(std::string_view description) {
  constexpr std::string_view kField = "GPU UUID:";
  const auto at = description.find(kField);
  if (at == std::string_view::npos) return {};
  auto text = description.substr(at + kField.size());
  text = text.substr(0, text.find('\n'));
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos || text.find('?') != std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") + 1 - first));
}

/// The UUID of the GPU in "MIG-GPU-6fd0…/3/0", the names of MIG devices before driver 470.
std::string_view owner_in(std::string_view slice) {
  constexpr std::string_view kMig = "MIG-";
  slice.remove_prefix(kMig.size());
  return slice.starts_with("GPU-") ? slice.substr(0, slice.find('/')) : std::string_view();
}

std::vector<int> cpus_near(const std::string& root, const std::string& address) {
  const auto near =
      read_text_file(fmt::format("{}/sys/bus/pci/devices/{}/local_cpulist", root, address));
  return near ? parse_cpus(*near) : std::vector<int>();
}

}  // namespace

std::vector<GpuPlace> nvidia_gpu_places(const std::string& root) {
  std::vector<GpuPlace> places;
  for (const auto& address : nvidia_gpus(root)) {
    auto& place = places.emplace_back(GpuPlace{.index = static_cast<int>(places.size())});
    const auto text =
        read_text_file(fmt::format("{}/proc/driver/nvidia/gpus/{}/information", root, address));
    if (text) place.uuid = uuid_in(*text);
    place.cpus = cpus_near(root, address);
  }
  return places;
}

std::vector<GpuPlace> amd_gpu_places(const std::string& root) {
  std::vector<GpuPlace> places;
  for (const auto& gpu : amd_gpus(root)) {
    places.push_back(
        {.index = gpu.index, .uuid = gpu.uuid, .slices = {}, .cpus = cpus_near(root, gpu.pci)});
  }
  return places;
}

const GpuPlace* find_gpu(const std::vector<GpuPlace>& places, std::string_view name) {
  int index = 0;
  const auto* const end = name.data() + name.size();
  if (const auto read = std::from_chars(name.data(), end, index);
      read.ec == std::errc{} && read.ptr == end) {
    const auto found = std::find_if(places.begin(), places.end(),
                                    [&](const GpuPlace& gpu) { return gpu.index == index; });
    return found == places.end() ? nullptr : &*found;
  }
  const bool slice = name.starts_with("MIG-");
  const auto uuid = slice ? owner_in(name) : name;
  if (!slice && !uuid.starts_with("GPU-")) return nullptr;
  const GpuPlace* found = nullptr;
  for (const auto& gpu : places) {
    const bool fits = slice && uuid.empty() ? std::find(gpu.slices.begin(), gpu.slices.end(),
                                                        name) != gpu.slices.end()
                                            : gpu.uuid.starts_with(uuid);
    if (!fits) continue;
    if (found != nullptr) return nullptr;
    found = &gpu;
  }
  return found;
}

}  // namespace horo::discovery
