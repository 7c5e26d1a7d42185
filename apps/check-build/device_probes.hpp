// SPDX-License-Identifier: Apache-2.0
// The rows about GPUs: which library reaches them, the drivers of this machine, and kernels.
#pragma once

#include <string>

#include "apps/check-build/probes.hpp"

namespace horo::apps {

// `library` is the path of libhoro, which is asked: it knows what a collective would do here. A
// process uses CUDA's driver or HIP's runtime, so one of the first two rows is never available.
// Blocks: while a driver starts.
Finding probe_cuda(const std::string& library);
Finding probe_rocm(const std::string& library);
/// NCCL, or RCCL where HIP's runtime is used.
Finding probe_nccl(const std::string& library);

/// The driver, and the GPUs that can be used, by NVIDIA's management library.
Finding probe_nvidia_driver();

/// AMD's GPUs that compute, by the kernel's files.
Finding probe_amd_driver();

/// The row `name`: whether this build has the file of kernels that `compiler` makes.
Finding probe_kernels(const char* name, const char* file, const char* compiler,
                      const std::string& library);

}  // namespace horo::apps
