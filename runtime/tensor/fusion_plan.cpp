// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/fusion_plan.hpp"

namespace horo::runtime {

void plan_fusion(std::span<const Candidate> ready, const FusionLimits& limits,
                 std::vector<std::uint32_t>& taken) {
  taken.clear();
  if (ready.empty()) return;
  taken.push_back(0);
  const auto& first = ready.front();
  if (first.fuse_key == 0) return;
  std::uint64_t bytes = first.bytes;
  std::uint64_t skipped = 0;
  for (std::uint32_t i = 1; i < ready.size() && taken.size() < limits.most_tensors; ++i) {
    const auto& next = ready[i];
    if (next.fuse_key == first.fuse_key && bytes + next.bytes <= limits.threshold_bytes) {
      bytes += next.bytes;
      taken.push_back(i);
    } else {
      skipped += next.bytes;
      if (bytes + skipped > limits.threshold_bytes) return;
    }
  }
}

}  // namespace horo::runtime
