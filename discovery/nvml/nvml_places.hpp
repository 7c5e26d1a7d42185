// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "discovery/gpu_places.hpp"

namespace horo::discovery {

/// Where NVIDIA's GPUs are by the management library, which knows MIG devices. Blocks: while the
/// driver starts. Fails: unavailable (no driver; says why).
Result<std::vector<GpuPlace>> nvml_gpu_places();

}  // namespace horo::discovery
