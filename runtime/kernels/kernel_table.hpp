// SPDX-License-Identifier: Apache-2.0
// What each instruction set's translation unit hands to the dispatcher.
#pragma once

#include "runtime/kernels/kernels.hpp"

namespace horo::kernels {

struct KernelTable {
  /// Null where there is no such reduction.
  ReduceFn one[runtime::kDTypes][runtime::kReduceOps];
  ReduceToManyFn many[runtime::kDTypes][runtime::kReduceOps];
  DotsFn dots[runtime::kDTypes];
  WeightedSumFn weighted_sum[runtime::kDTypes];
  EncodeFn encode[runtime::kDTypes];
  DecodeFn decode[runtime::kDTypes];
  CopyFn stream_copy;
};

extern const KernelTable kBaselineKernels;
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;

}  // namespace horo::kernels
