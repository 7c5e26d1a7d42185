// SPDX-License-Identifier: Apache-2.0
// Knobs for tensors in the memory of GPUs.
#pragma once

#include "base/knobs/choices.hpp"
#include "base/knobs/knob.hpp"

namespace horo::knobs {

inline constexpr Knob<std::string_view> kGpuDriver{
    .text = {.key = "gpu.driver",
             .group = kLibraries,
             .help = "file of CUDA's driver, which is loaded when the first tensor in GPU memory "
                     "is declared"},
    .fallback = "libcuda.so.1"};

}  // namespace horo::knobs
