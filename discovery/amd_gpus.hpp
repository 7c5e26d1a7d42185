// SPDX-License-Identifier: Apache-2.0
// AMD's GPUs that compute, by the files of the kernel's driver amdgpu. They tell all that Horo
// shows, so no library of ROCm is loaded.
//
// The nodes are those of KFD's topology, whose order is ROCm's order of devices; the files of use
// and memory are documented at https://docs.kernel.org/gpu/amdgpu/driver-misc.html and
// https://docs.kernel.org/gpu/amdgpu/thermal.html
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace horo::discovery {

struct AmdGpu {
  int index = 0;                 ///< As HIP_VISIBLE_DEVICES counts.
  std::string uuid;              ///< As ROCR_VISIBLE_DEVICES names it; empty: it has none.
  std::string pci;               ///< "0000:c1:00.0". Parts of one GPU have the same address.
  std::string name;              ///< The model; else the architecture, such as "gfx90a".
  std::string target;            ///< The architecture for which code is compiled; empty: not known.
  std::uint64_t memory = 0;      ///< Bytes; 0: not known.
  std::uint64_t used = 0;        ///< Bytes.
  int busy = -1;                 ///< Percent; -1: not known.
  int celsius = -1;              ///< The chip's temperature; -1: not known.
  std::vector<int> processes{};  ///< Those that have memory on it.
};

/// The GPUs that this process may see, below `root`. Nodes that a container must not read are
/// left out, as ROCm leaves them out. Empty without a driver. Blocks: for the driver, which asks
/// the devices for their use and temperature.
std::vector<AmdGpu> amd_gpus(const std::string& root = "");

/// Whether the kernel has a driver for AMD's devices that compute. Asks no device. Blocks: no.
bool has_amd_driver(const std::string& root = "");

/// The folder of a device's files. Pure.
std::string pci_folder(const std::string& root, const std::string& pci);

}  // namespace horo::discovery
