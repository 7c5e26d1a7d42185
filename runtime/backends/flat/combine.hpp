// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a schedule.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/backends/flat/schedule.hpp"
#include "runtime/backends/flat/schedule_memory.hpp"
#include "runtime/kernels/kernels.hpp"
#include "runtime/tensor/signature.hpp"

namespace horo::runtime {

/// Runs one reduction of a schedule.
inline void run(const Combine& combine, const Signature& like, int ranks,
                const ScheduleMemory& memory) {
  kernels::Reduction what{.dtype = like.dtype, .op = like.op, .ranks = ranks};
  switch (combine.stage) {
    case Stage::whole:
      what.prescale = like.prescale;
      what.postscale = like.postscale;
      break;
    case Stage::partial:
      if (what.op == ReduceOp::average) what.op = ReduceOp::sum;
      break;
    case Stage::last:
      what.postscale = like.postscale;
      break;
  }
  std::vector<const void*> sources;
  for (const auto offset : combine.sources) sources.push_back(memory.at(offset));
  kernels::reduce_kernel(what.dtype, what.op)(what, memory.at(combine.target), sources.data(),
                                              static_cast<int>(sources.size()), combine.elements);
}

/// Scales `count` inputs where they are.
inline void prescale(const Signature& like, std::byte* memory, std::uint64_t count) {
  if (like.prescale == 1) return;
  const kernels::Reduction what{
      .dtype = like.dtype, .op = ReduceOp::sum, .prescale = like.prescale};
  const void* from = memory;
  kernels::reduce_kernel(what.dtype, what.op)(what, memory, &from, 1, count);
}

}  // namespace horo::runtime
