// SPDX-License-Identifier: Apache-2.0
#define HORO_KERNEL_WIDTH 16
#include "runtime/kernels/body.hpp"

namespace horo::kernels {

constinit const KernelTable kBaselineKernels = make_table();

}  // namespace horo::kernels
