// SPDX-License-Identifier: Apache-2.0
#define HORO_KERNEL_WIDTH 64
#include "runtime/kernels/body.hpp"

namespace horo::kernels {

constinit const KernelTable kAvx512Kernels = make_table();

}  // namespace horo::kernels
