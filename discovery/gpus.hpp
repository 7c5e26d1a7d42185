// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace horo::discovery {

/// PCI addresses of the NVIDIA GPUs that this process may see, in the order of
/// CUDA_DEVICE_ORDER=PCI_BUS_ID. Reads the driver's files below `root` and does not call CUDA.
/// Empty if there is no GPU or no driver. Blocks: no.
std::vector<std::string> nvidia_gpus(const std::string& root = "");

}  // namespace horo::discovery
