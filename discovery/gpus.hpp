// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace horo::discovery {

/// PCI addresses of the NVIDIA GPUs that this process may see, in the order in which
/// CUDA_DEVICE_ORDER=PCI_BUS_ID numbers them; asks the driver's files, not CUDA. Empty: none, or no
/// driver. Blocks: no.
std::vector<std::string> nvidia_gpus();

}  // namespace horo::discovery
