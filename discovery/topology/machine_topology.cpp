// SPDX-License-Identifier: Apache-2.0
#include "discovery/topology/machine_topology.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "discovery/cpu_list.hpp"
#include "discovery/text_file.hpp"
#include "discovery/this_machine.hpp"
#include "discovery/topology/hwloc_library.hpp"

namespace horo::discovery {

namespace {

// PCI classes of accelerators: all 3D controllers, and display adapters of the vendors of GPUs.
constexpr unsigned k3dController = 0x0302;
constexpr unsigned kDisplay = 0x03;
constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kAmd = 0x1002;

/// hwloc's view of a machine.
class Machine {
 public:
  static Result<Machine> load(Detail detail, const std::string* synthetic) {
    HORO_TRY(const auto* library, HwlocLibrary::get());
    hwloc_topology_t topology = nullptr;
    if (library->init(&topology) != 0) return fail(Errc::io, "hwloc cannot make a topology");
    Machine machine(*library, topology);
    if (synthetic != nullptr && library->set_synthetic(topology, synthetic->c_str()) != 0)
      return fail(Errc::invalid_argument, "hwloc cannot read '{}' as a machine", *synthetic);
    // The x86 component binds this process to every hardware thread in turn, and tells nothing that
    // the kernel does not.
    library->set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    if (detail == Detail::devices)
      library->set_io_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (library->load(topology) != 0) return fail(Errc::io, "hwloc cannot read the machine");
    return machine;
  }

  std::vector<hwloc_obj_t> all(hwloc_obj_type_t type) const {
    std::vector<hwloc_obj_t> objects;
    const int depth = library_->depth(topology_.get(), type);
    if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE) return objects;
    const auto count = library_->count(topology_.get(), depth);
    for (unsigned i = 0; i < count; ++i)
      objects.push_back(library_->object(topology_.get(), depth, i));
    return objects;
  }

  std::vector<int> members(hwloc_const_bitmap_t bitmap) const {
    std::vector<int> numbers;
    if (bitmap == nullptr) return numbers;
    for (int i = library_->next(bitmap, -1); i >= 0; i = library_->next(bitmap, i))
      numbers.push_back(i);
    return numbers;
  }

 private:
  struct Destroy {
    const HwlocLibrary* library;

    void operator()(hwloc_topology* topology) const { library->destroy(topology); }
  };

  Machine(const HwlocLibrary& library, hwloc_topology_t topology)
      : library_(&library), topology_(topology, Destroy{&library}) {}

  const HwlocLibrary* library_;
  std::unique_ptr<hwloc_topology, Destroy> topology_;
};

std::string info(hwloc_obj_t object, std::string_view name) {
  for (unsigned i = 0; i < object->infos_count; ++i) {
    if (object->infos[i].name == name) return object->infos[i].value;
  }
  return {};
}

std::string pci_address(hwloc_obj_t object) {
  const auto& pci = object->attr->pcidev;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

hwloc_obj_t above(hwloc_obj_t object, hwloc_obj_type_t type) {
  while (object != nullptr && object->type != type) object = object->parent;
  return object;
}

class Reader {
 public:
  Reader(const Machine& machine, const std::set<int>* usable)
      : machine_(machine), usable_(usable) {}

  Topology read() {
    read_nodes();
    read_cores();
    read_gpus();
    read_networks();
    const auto packages = machine_.all(HWLOC_OBJ_PACKAGE);
    if (!packages.empty()) topology_.processor = info(packages.front(), "CPUModel");
    return std::move(topology_);
  }

 private:
  void read_nodes() {
    for (auto* object : machine_.all(HWLOC_OBJ_NUMANODE)) {
      index_[static_cast<int>(object->os_index)] = static_cast<int>(topology_.nodes.size());
      topology_.nodes.push_back({.number = static_cast<int>(object->os_index),
                                 .memory = object->attr->numanode.local_memory});
    }
    if (topology_.nodes.empty()) topology_.nodes.push_back({});
  }

  std::optional<int> node_of(hwloc_obj_t object) const {
    while (object != nullptr && object->nodeset == nullptr) object = object->parent;
    if (object == nullptr) return {};
    const auto numbers = machine_.members(object->nodeset);
    // A device near to several nodes has no nearest one.
    if (numbers.size() != 1) return {};
    const auto found = index_.find(numbers.front());
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }

  void read_cores() {
    auto objects = machine_.all(HWLOC_OBJ_CORE);
    if (objects.empty()) objects = machine_.all(HWLOC_OBJ_PU);
    for (auto* object : objects) {
      Core core{.cpus = machine_.members(object->cpuset), .node = node_of(object).value_or(0)};
      if (usable_ != nullptr)
        std::erase_if(core.cpus, [&](int cpu) { return usable_->count(cpu) == 0; });
      if (!core.cpus.empty()) topology_.cores.push_back(std::move(core));
    }
    std::stable_sort(topology_.cores.begin(), topology_.cores.end(),
                     [](const Core& a, const Core& b) { return a.node < b.node; });
  }

  void read_gpus() {
    for (auto* object : machine_.all(HWLOC_OBJ_PCI_DEVICE)) {
      const auto& pci = object->attr->pcidev;
      const bool maker = pci.vendor_id == kNvidia || pci.vendor_id == kAmd;
      if (pci.class_id != k3dController && !(pci.class_id >> 8U == kDisplay && maker)) continue;
      topology_.devices.push_back({.kind = DeviceKind::gpu,
                                   .name = info(object, "PCIDevice"),
                                   .address = pci_address(object),
                                   .node = node_of(object)});
    }
    std::sort(topology_.devices.begin(), topology_.devices.end(),
              [](const MachineDevice& a, const MachineDevice& b) { return a.address < b.address; });
  }

  void read_networks() {
    for (auto* object : machine_.all(HWLOC_OBJ_OS_DEVICE)) {
      const auto type = object->attr->osdev.type;
      if (type != HWLOC_OBJ_OSDEV_NETWORK && type != HWLOC_OBJ_OSDEV_OPENFABRICS) continue;
      auto* pci = above(object, HWLOC_OBJ_PCI_DEVICE);
      topology_.devices.push_back({.kind = DeviceKind::network,
                                   .name = object->name == nullptr ? "" : object->name,
                                   .address = pci == nullptr ? "" : pci_address(pci),
                                   .node = node_of(object)});
    }
  }

  const Machine& machine_;
  const std::set<int>* usable_;
  Topology topology_;
  std::map<int, int> index_;  ///< Index of each memory node by the kernel's number.
};

/// The lowest limit of this process's control groups, version 2 or 1.
std::optional<double> read_quota() {
  const auto groups = read_text_file("/proc/self/cgroup");
  if (!groups) return {};
  std::optional<double> least;
  const auto take = [&](const std::optional<double>& quota) {
    if (quota && (!least || *quota < *least)) least = quota;
  };
  const auto line = groups->find("0::/");
  auto path = line == std::string::npos
                  ? std::string()
                  : groups->substr(line + 3, groups->find('\n', line) - line - 3);
  for (;; path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'))) {
    if (const auto text = read_text_file("/sys/fs/cgroup" + path + "/cpu.max"); text)
      take(parse_quota(*text));
    if (path.empty()) break;
  }
  const auto quota = read_text_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const auto period = read_text_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (quota && period) take(parse_quota(quota->substr(0, quota->find('\n')) + " " + *period));
  return least;
}

}  // namespace

std::vector<MachineDevice> Topology::of(DeviceKind kind) const {
  std::vector<MachineDevice> found;
  std::copy_if(devices.begin(), devices.end(), std::back_inserter(found),
               [kind](const MachineDevice& device) { return device.kind == kind; });
  return found;
}

Result<Topology> read_topology(Detail detail) {
  HORO_TRY(const auto machine, Machine::load(detail, nullptr));
  const auto cpus = usable_cpus();
  const std::set<int> usable(cpus.begin(), cpus.end());
  auto topology = Reader(machine, &usable).read();
  if (topology.cores.empty())
    return fail(Errc::io, "hwloc finds no core that this process may use");
  topology.quota = read_quota();
  return topology;
}

Status can_read_topology() {
  HORO_TRY([[maybe_unused]] const auto* library, HwlocLibrary::get());
  return {};
}

Result<Topology> synthetic_topology(const std::string& description) {
  HORO_TRY(const auto machine, Machine::load(Detail::cores, &description));
  return Reader(machine, nullptr).read();
}

int count_memory_nodes() {
  const auto text = read_text_file("/sys/devices/system/node/has_memory");
  if (!text) return 1;
  return std::max(1, static_cast<int>(parse_cpus(*text).size()));
}

std::string describe_cpus(const std::vector<int>& cpus) {
  auto sorted = cpus;
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", sorted[i]);
    if (last > i) text += fmt::format("-{}", sorted[last]);
    i = last + 1;
  }
  return text;
}

std::optional<double> parse_quota(const std::string& text) {
  const auto space = text.find(' ');
  if (space == std::string::npos) return {};
  long long quota = 0;
  long long period = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, quota).ec != std::errc{}) return {};
  if (std::from_chars(text.data() + space + 1, end, period).ec != std::errc{}) return {};
  if (quota <= 0 || period <= 0) return {};
  return static_cast<double>(quota) / static_cast<double>(period);
}

}  // namespace horo::discovery
