// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/cluster/cluster.hpp"

#include <fmt/format.h>

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

std::string address_of(int host) {
  return fmt::format("10.{}.{}.{}", host / 62500, host / 250 % 250, host % 250 + 1);
}

std::uint16_t port_of(int rank) {
  return static_cast<std::uint16_t>(32768 + rank * 7 % 28000);
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
