// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/cluster/cluster.hpp"

namespace horo::runtime::sim {

std::string_view name(HostFailure::How how) {
  switch (how) {
    case HostFailure::How::dies:
      return "dies";
    case HostFailure::How::is_cut:
      return "is_cut";
    case HostFailure::How::stops:
      return "stops";
  }
  return "unknown";
}

std::uint64_t TrainingStep::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& tensor : tensors) sum += tensor.bytes;
  return sum;
}

int Cluster::hosts() const {
  int sum = 0;
  for (const auto& group : groups) sum += group.count;
  return sum;
}

int Cluster::ranks() const {
  int sum = 0;
  for (const auto& group : groups) sum += group.count * group.ranks;
  return sum;
}

}  // namespace horo::runtime::sim
