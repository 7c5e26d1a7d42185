// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <utility>

#include "apps/discover/survey.hpp"
#include "base/json.hpp"

namespace horo::apps {

using discovery::DeviceKind;
using discovery::MachineDevice;
using discovery::Topology;

namespace {

std::string in_gib(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1ULL << 30U));
}

std::string line(std::string_view what, std::string_view content) {
  return fmt::format("  {:<10} {}\n", what, content);
}

std::string way_to(const SurveyedHost& host) {
  if (host.here) return "this machine";
  if (!host.route) return host.problem;
  return fmt::format("{} by {} from {}", host.route->address, host.route->interface,
                     host.route->source);
}

std::vector<int> cpus_of(const Topology& topology, std::size_t node) {
  std::vector<int> cpus;
  for (const auto& core : topology.cores) {
    if (static_cast<std::size_t>(core.node) == node)
      cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  }
  return cpus;
}

std::string place_of(const Topology& topology, const MachineDevice& device) {
  auto text = device.address;
  if (device.node) {
    const auto number = topology.nodes[static_cast<std::size_t>(*device.node)].number;
    text += fmt::format("{}memory node {}", text.empty() ? "" : ", ", number);
  }
  return text;
}

bool ends_alike(std::string_view longer, std::string_view shorter) {
  if (longer.size() < shorter.size()) std::swap(longer, shorter);
  return std::equal(shorter.rbegin(), shorter.rend(), longer.rbegin(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

std::string topology_text(const Topology& topology) {
  std::string text;
  if (!topology.processor.empty()) text += line("processor", topology.processor);
  text += line("cores", fmt::format("{} usable{}", topology.cores.size(),
                                    topology.quota ? fmt::format("; its control group may use the "
                                                                 "time of {:.1f}",
                                                                 *topology.quota)
                                                   : ""));
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    text += line("memory", fmt::format("node {}: {}, hardware threads {}", topology.nodes[i].number,
                                       in_gib(topology.nodes[i].memory),
                                       discovery::describe_cpus(cpus_of(topology, i))));
  }
  return text;
}

/// The memory node of a GPU by its PCI address, whose domain may have four digits or eight.
std::string node_text(const Survey& survey, const std::string& pci) {
  if (!survey.topology) return "";
  for (const auto& device : survey.topology->of(DeviceKind::gpu)) {
    if (device.address.empty() || !device.node || !ends_alike(pci, device.address)) continue;
    const auto node = static_cast<std::size_t>(*device.node);
    return fmt::format(", memory node {}", survey.topology->nodes[node].number);
  }
  return "";
}

std::string gpu_text(const Survey& survey, const discovery::Gpu& gpu) {
  if (!gpu.problem.empty()) return discovery::describe_problem(gpu);
  auto text = fmt::format("{}: {}, {}, {} of {} used", gpu.index, gpu.name, gpu.pci,
                          in_gib(gpu.used), in_gib(gpu.memory));
  if (gpu.busy >= 0) text += fmt::format(", {} % busy", gpu.busy);
  text += node_text(survey, gpu.pci);
  for (const auto& links : gpu.links)
    text += fmt::format(", {} NVLinks to {}", links.links, links.peer);
  if (gpu.sliced) text += fmt::format(", {} MIG slices", gpu.slices.size());
  if (gpu.uncorrected != 0)
    text +=
        fmt::format(", {} uncorrected memory errors since the driver was loaded", gpu.uncorrected);
  return text;
}

std::string amd_text(const Survey& survey, const discovery::AmdGpu& gpu) {
  auto text = fmt::format("{}: {}, {}", gpu.index, gpu.name, gpu.pci);
  if (gpu.name != gpu.target && !gpu.target.empty()) text += fmt::format(", {}", gpu.target);
  if (gpu.memory != 0) text += fmt::format(", {} of {} used", in_gib(gpu.used), in_gib(gpu.memory));
  if (gpu.busy >= 0) text += fmt::format(", {} % busy", gpu.busy);
  return text + node_text(survey, gpu.pci);
}

std::string nvidia_text(const Survey& survey) {
  auto text = line("driver", fmt::format("NVIDIA {}, for CUDA up to {}", survey.gpus->driver,
                                         discovery::cuda_version_text(survey.gpus->cuda)));
  for (const auto& gpu : survey.gpus->gpus) text += line("GPU", gpu_text(survey, gpu));
  return text;
}

/// GPUs on the PCI bus of which no driver tells more.
std::string other_gpus_text(const Survey& survey) {
  std::string text;
  if (!survey.topology || survey.gpus) return text;
  for (const auto& gpu : survey.topology->of(DeviceKind::gpu)) {
    const bool known =
        std::any_of(survey.amd_gpus.begin(), survey.amd_gpus.end(),
                    [&](const discovery::AmdGpu& amd) { return ends_alike(amd.pci, gpu.address); });
    if (known && !gpu.address.empty()) continue;
    text += line("GPU", fmt::format("{}, {}; its use is not known: {}",
                                    gpu.name.empty() ? "unknown model" : gpu.name,
                                    place_of(*survey.topology, gpu), survey.gpu_problem));
  }
  return text;
}

std::string gpus_text(const Survey& survey) {
  const bool nvidia = survey.gpus && !survey.gpus->gpus.empty();
  const auto others = other_gpus_text(survey);
  std::string text;
  if (survey.gpus) text += nvidia_text(survey);
  if (!survey.amd_gpus.empty()) text += line("driver", "AMD amdgpu, for ROCm");
  for (const auto& gpu : survey.amd_gpus) text += line("GPU", amd_text(survey, gpu));
  const bool none = !nvidia && survey.amd_gpus.empty() && others.empty();
  return text + (none ? line("GPU", "none") : others);
}

void write_amd(JsonWriter& json, const Survey& survey) {
  if (survey.amd_gpus.empty()) return;
  json.key("amd").begin_object().key("gpus").begin_array();
  for (const auto& gpu : survey.amd_gpus) {
    json.begin_object().key("index").value(gpu.index).key("name").value(gpu.name);
    json.key("uuid").value(gpu.uuid).key("pci").value(gpu.pci).key("target").value(gpu.target);
    json.key("memory_bytes").value(static_cast<std::int64_t>(gpu.memory));
    json.key("used_bytes").value(static_cast<std::int64_t>(gpu.used));
    if (gpu.busy >= 0) json.key("busy_percent").value(gpu.busy);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_gpu(JsonWriter& json, const discovery::Gpu& gpu) {
  json.begin_object().key("index").value(gpu.index).key("name").value(gpu.name);
  json.key("uuid").value(gpu.uuid).key("pci").value(gpu.pci);
  json.key("memory_bytes").value(static_cast<std::int64_t>(gpu.memory));
  json.key("used_bytes").value(static_cast<std::int64_t>(gpu.used));
  if (gpu.busy >= 0) json.key("busy_percent").value(gpu.busy);
  json.key("uncorrected_errors").value(static_cast<std::int64_t>(gpu.uncorrected));
  json.key("mig_slices").begin_array();
  for (const auto& slice : gpu.slices) json.value(slice);
  json.end_array().key("nvlinks").begin_array();
  for (const auto& links : gpu.links) {
    json.begin_object().key("peer").value(links.peer).key("links").value(links.links);
    json.end_object();
  }
  json.end_array();
  if (!gpu.problem.empty()) json.key("problem").value(gpu.problem);
  json.end_object();
}

void write_nvidia(JsonWriter& json, const Survey& survey) {
  if (!survey.gpus) return;
  json.key("nvidia").begin_object().key("driver").value(survey.gpus->driver);
  json.key("cuda").value(discovery::cuda_version_text(survey.gpus->cuda));
  json.key("gpus").begin_array();
  for (const auto& gpu : survey.gpus->gpus) write_gpu(json, gpu);
  json.end_array().end_object();
}

std::string interface_text(const Survey& survey, const discovery::Interface& interface) {
  auto text = fmt::format("{} {}", interface.name, interface.up ? "up" : "down");
  for (const auto& address : interface.addresses) text += fmt::format(", {}", address);
  if (interface.megabits) text += fmt::format(", {} Mbit/s", *interface.megabits);
  if (!survey.topology) return text;
  for (const auto& device : survey.topology->of(DeviceKind::network)) {
    if (device.name != interface.name) continue;
    if (const auto place = place_of(*survey.topology, device); !place.empty())
      text += fmt::format(", {}", place);
  }
  return text;
}

/// Network devices without addresses: InfiniBand adapters.
std::vector<MachineDevice> adapters(const Survey& survey) {
  if (!survey.topology) return {};
  auto devices = survey.topology->of(DeviceKind::network);
  std::erase_if(devices, [&](const MachineDevice& device) {
    return std::any_of(survey.interfaces.begin(), survey.interfaces.end(),
                       [&](const auto& interface) { return interface.name == device.name; });
  });
  return devices;
}

void write_device(JsonWriter& json, const Topology& topology, const MachineDevice& device) {
  json.begin_object().key("name").value(device.name).key("pci").value(device.address);
  json.key("node");
  if (device.node) {
    json.value(topology.nodes[static_cast<std::size_t>(*device.node)].number);
  } else {
    json.null();
  }
  json.end_object();
}

void write_hosts(JsonWriter& json, const Survey& survey) {
  json.key("hosts").begin_array();
  for (const auto& host : survey.hosts) {
    json.begin_object().key("name").value(host.host.name).key("slots").value(host.host.slots);
    json.key("gpus").value(host.host.gpus).key("here").value(host.here);
    if (host.route) {
      json.key("address").value(host.route->address).key("source").value(host.route->source);
      json.key("interface").value(host.route->interface);
    }
    if (!host.problem.empty()) json.key("problem").value(host.problem);
    json.end_object();
  }
  json.end_array();
}

void write_topology(JsonWriter& json, const Topology& topology) {
  json.key("processor").value(topology.processor);
  json.key("nodes").begin_array();
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const auto& node = topology.nodes[i];
    json.begin_object().key("number").value(node.number).key("memory_bytes");
    json.value(static_cast<std::int64_t>(node.memory));
    json.key("cores").begin_array();
    for (const auto& core : topology.cores) {
      if (static_cast<std::size_t>(core.node) == i) json.value(discovery::describe_cpus(core.cpus));
    }
    json.end_array().end_object();
  }
  json.end_array().key("cores").value(static_cast<std::int64_t>(topology.cores.size()));
  json.key("quota");
  if (topology.quota) {
    json.value(*topology.quota);
  } else {
    json.null();
  }
  json.key("gpus").begin_array();
  for (const auto& gpu : topology.of(DeviceKind::gpu)) write_device(json, topology, gpu);
  json.end_array().key("network_devices").begin_array();
  for (const auto& device : topology.of(DeviceKind::network)) write_device(json, topology, device);
  json.end_array();
}

void write_interfaces(JsonWriter& json, const Survey& survey) {
  json.key("interfaces").begin_array();
  for (const auto& interface : survey.interfaces) {
    json.begin_object().key("name").value(interface.name).key("up").value(interface.up);
    json.key("loopback").value(interface.loopback).key("addresses").begin_array();
    for (const auto& address : interface.addresses) json.value(address);
    json.end_array();
    if (interface.megabits) json.key("megabits_per_second").value(*interface.megabits);
    json.end_object();
  }
  json.end_array();
}

long long slots_of(const Survey& survey) {
  long long sum = 0;
  for (const auto& host : survey.hosts) sum += host.host.slots;
  return sum;
}

}  // namespace

std::string survey_text(const Survey& survey) {
  auto text = fmt::format("hosts from {}: {}\n\n  {:<24} {:>6} {:>5}  {}\n", survey.source,
                          survey.why, "host", "slots", "GPUs", "way there");
  for (const auto& host : survey.hosts) {
    text += fmt::format("  {:<24} {:>6} {:>5}  {}\n", host.host.name, host.host.slots,
                        host.host.gpus == 0 ? "-" : std::to_string(host.host.gpus), way_to(host));
  }
  text +=
      fmt::format("  {:<24} {:>6}\n\nthis machine, '{}'\n\n",
                  fmt::format("{} in all", survey.hosts.size()), slots_of(survey), survey.machine);
  text +=
      survey.topology ? topology_text(*survey.topology) : line("cores", survey.topology_problem);
  text += gpus_text(survey);
  for (const auto& interface : survey.interfaces)
    text += line("network", interface_text(survey, interface));
  for (const auto& device : adapters(survey)) {
    text += line("adapter", fmt::format("{}, {}", device.name, place_of(*survey.topology, device)));
  }
  if (survey.shared_memory) {
    text += line("/dev/shm", fmt::format("{} free of {}", in_gib(survey.shared_memory->free),
                                         in_gib(survey.shared_memory->total)));
  }
  return text;
}

std::string survey_json(const Survey& survey) {
  JsonWriter json;
  json.begin_object().key("source").value(survey.source).key("why").value(survey.why);
  json.key("slots").value(static_cast<std::int64_t>(slots_of(survey)));
  write_hosts(json, survey);
  json.key("machine").begin_object().key("name").value(survey.machine);
  if (survey.topology) {
    write_topology(json, *survey.topology);
  } else {
    json.key("problem").value(survey.topology_problem);
  }
  write_nvidia(json, survey);
  write_amd(json, survey);
  write_interfaces(json, survey);
  if (survey.shared_memory) {
    json.key("shared_memory").begin_object();
    json.key("free_bytes").value(static_cast<std::int64_t>(survey.shared_memory->free));
    json.key("total_bytes").value(static_cast<std::int64_t>(survey.shared_memory->total));
    json.end_object();
  }
  json.end_object().end_object();
  return json.text() + "\n";
}

}  // namespace horo::apps
