// SPDX-License-Identifier: Apache-2.0
#include "runtime/bucket/run_alone.hpp"

#include <cstring>

#include "runtime/bucket/adasum.hpp"
#include "runtime/kernels/kernels.hpp"

namespace horo::runtime {

void combine_parts(const Signature& like, std::span<const void* const> inputs,
                   std::uint64_t elements, void* out) {
  if (like.op == ReduceOp::adasum)
    return adasum(like.dtype, like.prescale * like.postscale, inputs, elements, out);
  const auto n = static_cast<int>(inputs.size());
  const kernels::Reduction what{.dtype = like.dtype,
                                .op = like.op,
                                .prescale = like.prescale,
                                .postscale = like.postscale,
                                .ranks = n};
  kernels::reduce_kernel(like.dtype, like.op)(what, out, inputs.data(), n, elements);
}

void run_alone(const Bucket& bucket) {
  const auto& like = bucket.like;
  for (std::size_t p = 0; p < bucket.parts.size(); ++p) {
    const auto& part = bucket.parts[p];
    if (moves_nothing(like.kind) || part.elements == 0) continue;
    if (reduces(like.kind)) {
      combine_parts(like, {&part.in, 1}, part.elements, part.out);
    } else if (part.in != part.out) {
      // An alltoall's splits may leave out rows at the end.
      const auto elements =
          like.kind == Kind::alltoall ? bucket.peers[p].sent * part.row_elements : part.elements;
      std::memcpy(part.out, part.in, elements * size_of(like.dtype));
    }
  }
}

}  // namespace horo::runtime
