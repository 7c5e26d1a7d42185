// SPDX-License-Identifier: Apache-2.0
#define HORO_KERNEL_WIDTH 32
#include "runtime/kernels/body.hpp"

namespace horo::kernels {

constinit const KernelTable kAvx2Kernels = make_table();

}  // namespace horo::kernels
