// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/tensor_census.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace horo::runtime::tuning {

void TensorCensus::count(std::span<const TensorId> ids) {
  for (const auto id : ids) {
    if (id.index() >= times_.size()) times_.resize(id.index() + 1);
    ++times_[id.index()];
  }
}

std::string TensorCensus::signature(const TraitsOf& traits) const {
  std::vector<std::uint32_t> sorted;
  for (const auto times : times_) {
    if (times > 0) sorted.push_back(times);
  }
  if (sorted.empty()) return {};
  std::sort(sorted.begin(), sorted.end());
  const auto usual = sorted[sorted.size() / 2];
  std::uint64_t tensors = 0, bytes = 0, hash = 0;
  for (std::size_t i = 0; i < times_.size(); ++i) {
    if (2 * times_[i] <= usual) continue;
    const auto one = traits(TensorId{static_cast<std::uint32_t>(i)});
    ++tensors;
    bytes += one.bytes;
    hash += one.hash;  // A sum does not depend on the order.
  }
  return fmt::format("{} tensors, {} bytes, {:016x}", tensors, bytes, hash);
}

std::uint64_t hash_more(std::uint64_t hash, std::string_view bytes) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace horo::runtime::tuning
