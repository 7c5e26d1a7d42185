// SPDX-License-Identifier: Apache-2.0
// Where the GPUs of this machine are: the hardware threads nearest to each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace horo::discovery {

struct GpuPlace {
  int index = 0;                    ///< As CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES counts.
  std::string uuid;                 ///< Empty: not known.
  std::vector<std::string> slices;  ///< UUIDs of its MIG devices, where they are known.
  std::vector<int> cpus;            ///< The nearest hardware threads; empty: not known.
};

/// NVIDIA's GPUs in the order of PCI addresses, by the driver's and the kernel's files below
/// `root`. They do not know MIG devices, and to read them does not start the driver. Empty without
/// a driver. Blocks: no.
std::vector<GpuPlace> nvidia_gpu_places(const std::string& root = "");

/// AMD's GPUs in ROCm's order, by the kernel's files below `root`. Blocks: no.
std::vector<GpuPlace> amd_gpu_places(const std::string& root = "");

/// The GPU that CUDA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES calls `name`: an index, a UUID or its
/// beginning, or the UUID of a MIG device. Null: there is none, or several have that beginning.
/// Pure.
const GpuPlace* find_gpu(const std::vector<GpuPlace>& places, std::string_view name);

}  // namespace horo::discovery
