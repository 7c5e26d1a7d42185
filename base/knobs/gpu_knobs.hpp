// SPDX-License-Identifier: Apache-2.0
// Knobs for tensors in the memory of GPUs.
#pragma once

#include "base/knobs/choices.hpp"
#include "base/knobs/knob.hpp"

namespace horo::knobs {

inline constexpr Knob<GpuOperations> kGpuOperations{
    .text =
        {.key = "gpu.operations",
         .group = kLibraries,
         .help =
             "how tensors in GPU memory move; auto: small sums inside one host by ipc (memory "
             "that its GPUs share), others by nccl (RCCL on AMD's GPUs), each where all ranks can; "
             "the rest staged, through host memory; staged: all of them, also where the tensors of "
             "a rank are on several GPUs",
         .choices = {"auto", "nccl", "ipc", "staged"}},
    .fallback = GpuOperations::automatic,
    .least = GpuOperations::automatic,
    .most = GpuOperations::staged};

inline constexpr Knob<std::string_view> kGpuDriver{
    .text = {.key = "gpu.driver",
             .group = kLibraries,
             .help =
                 "file of CUDA's driver or of AMD's HIP runtime, which is loaded when the first "
                 "tensor in GPU memory is declared; auto: the one that the program has loaded, "
                 "or else the one for this host's GPUs"},
    .fallback = "auto"};

inline constexpr Knob<std::string_view> kGpuNccl{
    .text = {.key = "gpu.nccl",
             .group = kLibraries,
             .help = "file of NCCL, or of RCCL for AMD's GPUs; auto: the one that a framework has "
                     "loaded, or else libnccl.so.2 or librccl.so.1"},
    .fallback = "auto"};

inline constexpr Knob<bool> kGpuAsyncCompletion{
    .text = {.key = "gpu.async.completion",
             .group = kLibraries,
             .help = "synchronize() of a tensor in GPU memory lets the program's stream wait for "
                     "the result; false: the program waits",
             .variable = {.name = "HOROVOD_ENABLE_ASYNC_COMPLETION"}},
    .fallback = true};

}  // namespace horo::knobs
