// SPDX-License-Identifier: Apache-2.0
// The kernels for a device: by nvcc or hipcc.
#include "runtime/device/kernels/kernel_list.hpp"

#if defined(__CUDACC__)
#define HORO_CONSTANT __grid_constant__
#else
#define HORO_CONSTANT
#endif

using namespace horo::runtime::device_code;  // NOLINT: the kernels' own namespace

template <typename Kernel>
__device__ __forceinline__ void run(const typename Kernel::Arguments& arguments) {
  __shared__ typename Kernel::Shared shared;
  const Place place{blockIdx.x, gridDim.x, threadIdx.x};
  for (int phase = 0; phase < Kernel::kPhases; ++phase) {
    if (phase != 0) __syncthreads();
    Kernel::phase(phase, arguments, shared, place);
  }
}

#define HORO_KERNEL(name, ...)                                     \
  extern "C" __global__ void __launch_bounds__(kThreads)           \
      name(const HORO_CONSTANT __VA_ARGS__::Arguments arguments) { \
    run<__VA_ARGS__>(arguments);                                   \
  }

HORO_KERNELS(HORO_KERNEL)
