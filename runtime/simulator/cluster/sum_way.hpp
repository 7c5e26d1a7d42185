// SPDX-License-Identifier: Apache-2.0
// The parts of a simulated sum: its bucket, its segments, and the way of its bytes from host to
// host. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"
#include "runtime/backends/flat/schedule.hpp"
#include "runtime/backends/flat/segment.hpp"
#include "runtime/bucket/backend.hpp"

namespace horo::runtime::sim {

/// How the bytes of a sum come from host to host.
struct SumWay {
  bool by_hosts = false;  ///< Once for each host, after a sum inside it; else for each rank.
  Algorithm algorithm{};

  friend bool operator==(const SumWay&, const SumWay&) = default;
};

inline constexpr std::uint64_t kPiece = std::uint64_t{4} << 20U;  // As the hierarchical backend's.
inline constexpr double kReducedPerSecond = 8e9;                  // Bytes that a core adds.

inline Duration taking(std::uint64_t bytes, double per_second) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(bytes) / per_second * 1e9));
}

inline Bucket bucket_of(std::uint64_t elements, std::uint64_t small_message) {
  Bucket bucket{.small_message = small_message};
  bucket.like = {.kind = Kind::allreduce, .dtype = DType::f32};
  bucket.like.elements = elements;
  bucket.parts.push_back({.elements = elements});
  return bucket;
}

inline std::uint64_t segments_of(const Bucket& bucket, int size) {
  const auto unit = segment_unit(bucket, size, segment_bytes(size));
  return std::max<std::uint64_t>(1, (bucket.parts.front().elements + unit - 1) / unit);
}

}  // namespace horo::runtime::sim
