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

std::uint32_t TensorCensus::usual_times() const {
  auto sorted = times_;
  std::sort(sorted.begin(), sorted.end());
  std::uint64_t left = 0;
  for (const auto times : sorted) left += times;
  left -= left / 2;
  for (const auto times : sorted) {
    if (times >= left) return times;
    left -= times;
  }
  return 0;
}

std::string TensorCensus::signature(const TraitsOf& traits) const {
  const auto usual = usual_times();
  if (usual == 0) return {};
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
