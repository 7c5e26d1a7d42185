// SPDX-License-Identifier: Apache-2.0
// What this machine has, as far as this process may use it: cores, memory nodes, GPUs, network
// devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace horo::discovery {

struct Core {
  std::vector<int> cpus;  ///< Its hardware threads, as the kernel numbers them; never empty.
  int node = 0;           ///< Index in Topology::nodes.

  friend bool operator==(const Core&, const Core&) = default;
};

struct MemoryNode {
  int number = 0;            ///< As the kernel numbers it.
  std::uint64_t memory = 0;  ///< Bytes.

  friend bool operator==(const MemoryNode&, const MemoryNode&) = default;
};

enum class DeviceKind : std::uint8_t { gpu, network };

struct Device {
  DeviceKind kind = DeviceKind::gpu;
  std::string name;         ///< "eth0", "mlx5_0"; of a GPU its model, empty if that is not known.
  std::string address;      ///< On the PCI bus, "0000:3b:00.0"; empty: on none.
  std::optional<int> node;  ///< Index in Topology::nodes of the one it is nearest to.
};

struct Topology {
  std::string processor;          ///< Its model; empty: not known.
  std::vector<MemoryNode> nodes;  ///< Never empty.
  std::vector<Core> cores;        ///< Those with a usable hardware thread, by memory node.
  std::vector<Device> devices;  ///< GPUs by PCI address, as CUDA_DEVICE_ORDER=PCI_BUS_ID has them.
  std::optional<double> quota;  ///< Cores' worth of time that the control group may use.

  std::vector<Device> of(DeviceKind kind) const;
};

enum class Detail : std::uint8_t { cores, devices };  ///< devices: cores and devices.

/// This machine, restricted to this process's affinity and control group. Needs hwloc's library at
/// run time. Thread: any. Blocks: for some 10 ms, devices longer.
/// Fails: unavailable (no libhwloc.so.15), io.
Result<Topology> read_topology(Detail detail);

/// Whether read_topology has what it needs. Fails: unavailable.
Status can_read_topology();

/// A made-up machine in hwloc's notation, "numa:2 core:4 pu:2", all of it usable. For tests.
Result<Topology> synthetic_topology(const std::string& description);

/// Memory nodes of this machine, without hwloc. At least 1. Blocks: no.
int count_memory_nodes();

/// Numbers of hardware threads as the kernel writes them, "0-3,8". Pure.
std::string describe_cpus(const std::vector<int>& cpus);

/// Cores' worth of time in the text of a control group's cpu.max ("200000 100000"); nothing for
/// "max" or nonsense. Pure.
std::optional<double> parse_quota(const std::string& text);

}  // namespace horo::discovery
