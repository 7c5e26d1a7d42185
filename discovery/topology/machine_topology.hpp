// SPDX-License-Identifier: Apache-2.0
// The hardware of this machine that this process may use: cores, memory nodes, GPUs and network
// devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace horo::discovery {

struct Core {
  std::vector<int> cpus;  ///< Its hardware threads by the kernel's numbers; never empty.
  int node = 0;           ///< Index in Topology::nodes.

  friend bool operator==(const Core&, const Core&) = default;
};

struct MemoryNode {
  int number = 0;            ///< The kernel's number.
  std::uint64_t memory = 0;  ///< Bytes.

  friend bool operator==(const MemoryNode&, const MemoryNode&) = default;
};

enum class DeviceKind : std::uint8_t { gpu, network };

struct MachineDevice {
  DeviceKind kind = DeviceKind::gpu;
  std::string name;         ///< "eth0", "mlx5_0"; for a GPU its model, empty if not known.
  std::string address;      ///< PCI address, "0000:3b:00.0"; empty if it is on no PCI bus.
  std::optional<int> node;  ///< Index of the nearest node in Topology::nodes.
};

struct Topology {
  std::string processor;          ///< Its model; empty if not known.
  std::vector<MemoryNode> nodes;  ///< Never empty.
  std::vector<Core> cores;        ///< Cores with a usable hardware thread, by memory node.
  /// GPUs by PCI address, in the order of CUDA_DEVICE_ORDER=PCI_BUS_ID.
  std::vector<MachineDevice> devices;
  std::optional<double> quota;  ///< CPU time that the control group may use, in cores.

  std::vector<MachineDevice> of(DeviceKind kind) const;
};

enum class Detail : std::uint8_t { cores, devices };  ///< devices includes the cores.

/// This machine, restricted to the affinity and the control group of this process. Needs hwloc's
/// library at run time. Thread: any. Blocks: for about 10 ms, longer with devices. Fails:
/// unavailable (no libhwloc.so.15), io.
Result<Topology> read_topology(Detail detail);

/// Whether read_topology can load its library. Fails: unavailable.
Status can_read_topology();

/// A simulated machine in hwloc's notation, "numa:2 core:4 pu:2", all of which may be used. For
/// tests.
Result<Topology> synthetic_topology(const std::string& description);

/// Number of memory nodes of this machine, at least 1. Does not need hwloc. Blocks: no.
int count_memory_nodes();

/// Numbers of hardware threads in the kernel's form, "0-3,8". Pure.
std::string describe_cpus(const std::vector<int>& cpus);

/// CPU time in cores from the text of a control group's cpu.max ("200000 100000"); nothing for
/// "max" or an invalid text. Pure.
std::optional<double> parse_quota(const std::string& text);

}  // namespace horo::discovery
