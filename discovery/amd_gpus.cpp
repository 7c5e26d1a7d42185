// SPDX-License-Identifier: Apache-2.0
#include "discovery/amd_gpus.hpp"

#include <algorithm>
#include <charconv>
#include <dirent.h>
#include <memory>
#include <optional>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "discovery/text_file.hpp"

namespace horo::discovery {

namespace {

constexpr std::uint64_t kPublicMemory = 1;   // Frame buffer that the host reaches.
constexpr std::uint64_t kPrivateMemory = 2;  // Frame buffer that it does not.

/// The names of a folder's entries.
std::vector<std::string> names_in(const std::string& path) {
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };

  std::vector<std::string> names;
  const std::unique_ptr<DIR, Close> folder(opendir(path.c_str()));
  if (!folder) return names;
  while (const auto* entry = readdir(folder.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The numbers by which the entries of a folder are called, in order.
std::vector<int> numbers_in(const std::string& path) {
  std::vector<int> numbers;
  for (const auto& name : names_in(path)) {
    int number = 0;
    const auto* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data(), end, number);
    if (read.ec == std::errc{} && read.ptr == end) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// The number behind a name at the beginning of a line of the kernel's description of a node.
std::uint64_t property(const std::string& text, std::string_view name) {
  for (const auto line : words(text, "\n")) {
    if (!line.starts_with(name) || line.substr(name.size(), 1) != " ") continue;
    const auto number = line.substr(name.size() + 1);
    std::uint64_t value = 0;
    std::from_chars(number.data(), number.data() + number.size(), value);
    return value;
  }
  return 0;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  const auto text = read_text_file(path);
  std::uint64_t value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{})
    return {};
  return value;
}

/// Bus, device and function in one number, as the kernel has them for AMD's GPUs.
std::string pci_address(std::uint64_t domain, std::uint64_t location) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, location >> 8U & 0xffU,
                     location >> 3U & 0x1fU, location & 7U);
}

/// "gfx90a" for 90010: major, minor and stepping have two decimal digits each.
std::string target_of(std::uint64_t version) {
  if (version == 0) return {};
  return fmt::format("gfx{}{:x}{:x}", version / 10'000, version / 100 % 100, version % 100);
}

std::uint64_t memory_of(const std::string& node) {
  std::uint64_t bytes = 0;
  for (const auto bank : numbers_in(node + "/mem_banks")) {
    const auto text = read_text_file(fmt::format("{}/mem_banks/{}/properties", node, bank));
    if (!text) continue;
    const auto kind = property(*text, "heap_type");
    if (kind == kPublicMemory || kind == kPrivateMemory) bytes += property(*text, "size_in_bytes");
  }
  return bytes;
}

std::string first_line(const std::string& path) {
  const auto text = read_text_file(path);
  return text ? text->substr(0, text->find('\n')) : "";
}

/// The temperature by the sensor at the edge of the chip, or else of the hottest place (junction),
/// or else of the first sensor.
int celsius_of(const std::string& device) {
  constexpr std::uint64_t kMilli = 1000;
  int celsius = -1;
  for (const auto& name : names_in(device + "/hwmon")) {
    const auto sensors = fmt::format("{}/hwmon/{}", device, name);
    for (int sensor = 1; sensor <= 3; ++sensor) {
      const auto degrees = number_in(fmt::format("{}/temp{}_input", sensors, sensor));
      if (!degrees) continue;
      const auto label = first_line(fmt::format("{}/temp{}_label", sensors, sensor));
      if (celsius < 0 || label == "edge") celsius = static_cast<int>(*degrees / kMilli);
      if (label == "edge") return celsius;
    }
  }
  return celsius;
}

/// The processes that have memory on the GPU with this id of KFD.
std::vector<int> processes_on(const std::string& root, std::uint64_t id) {
  std::vector<int> processes;
  const auto all = root + "/sys/class/kfd/kfd/proc";
  for (const auto process : numbers_in(all)) {
    if (number_in(fmt::format("{}/{}/vram_{}", all, process, id)).value_or(0) != 0)
      processes.push_back(process);
  }
  return processes;
}

AmdGpu read_gpu(const std::string& root, const std::string& node, const std::string& text) {
  const auto id = property(text, "unique_id");
  AmdGpu gpu{.index = 0,
             .uuid = id == 0 ? "" : fmt::format("GPU-{:016x}", id),
             .pci = pci_address(property(text, "domain"), property(text, "location_id")),
             .name = {},
             .target = target_of(property(text, "gfx_target_version")),
             .memory = memory_of(node)};
  const auto device = pci_folder(root, gpu.pci);
  gpu.name = first_line(device + "/product_name");
  if (gpu.name.empty()) gpu.name = gpu.target.empty() ? "unknown model" : gpu.target;
  gpu.used = number_in(device + "/mem_info_vram_used").value_or(0);
  if (const auto busy = number_in(device + "/gpu_busy_percent"))
    gpu.busy = static_cast<int>(std::min<std::uint64_t>(*busy, 100));
  gpu.celsius = celsius_of(device);
  if (const auto known = number_in(node + "/gpu_id")) gpu.processes = processes_on(root, *known);
  return gpu;
}

}  // namespace

std::string pci_folder(const std::string& root, const std::string& pci) {
  return fmt::format("{}/sys/bus/pci/devices/{}", root, pci);
}

bool has_amd_driver(const std::string& root) {
  return access((root + "/sys/class/kfd/kfd").c_str(), F_OK) == 0;
}

std::vector<AmdGpu> amd_gpus(const std::string& root) {
  std::vector<AmdGpu> gpus;
  const auto nodes = root + "/sys/class/kfd/kfd/topology/nodes";
  for (const auto number : numbers_in(nodes)) {
    const auto node = fmt::format("{}/{}", nodes, number);
    const auto text = read_text_file(node + "/properties");
    if (!text || property(*text, "simd_count") == 0) continue;  // Hidden; a processor.
    gpus.push_back(read_gpu(root, node, *text));
    gpus.back().index = static_cast<int>(gpus.size()) - 1;
  }
  return gpus;
}

}  // namespace horo::discovery
