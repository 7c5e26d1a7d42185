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
  int index = 0;             ///< As HIP_VISIBLE_DEVICES counts.
  std::string uuid;          ///< As ROCR_VISIBLE_DEVICES names it; empty: it has none.
  std::string pci;           ///< "0000:c1:00.0". Parts of one GPU have the same address.
  std::string name;          ///< The model; else the architecture, such as "gfx90a".
  std::string target;        ///< The architecture for which code is compiled; empty: not known.
  std::uint64_t memory = 0;  ///< Bytes; 0: not known.
  std::uint64_t used = 0;    ///< Bytes.
  int busy = -1;             ///< Percent; -1: not known.
};

/// The GPUs that this process may see, below `root`. Nodes that a container must not read are
/// left out, as ROCm leaves them out. Empty without a driver. Blocks: no.
std::vector<AmdGpu> amd_gpus(const std::string& root = "");

}  // namespace horo::discovery
