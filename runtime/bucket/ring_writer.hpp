// SPDX-License-Identifier: Apache-2.0
// How a rank writes into its ring, whose lines the peers have read before.
//
// Between cores that share a cache, ordinary stores are best: the peer finds the bytes in that
// cache. Between other cores (on other chiplets or sockets, or virtual processors that the host
// moves about) each line must first be taken from the peer's cache: 2 GB/s measured on Zen 4, where
// stores that bypass the caches reach 30. Programs cannot ask which case it is, and it may change
// at any time. So both ways are measured while they copy, the one not in use now and then.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "runtime/kernels/kernels.hpp"

namespace horo::runtime {

/// Owns the measured costs of both ways and chooses one. Costs are in any unit per byte.
class RingPath {
 public:
  /// Whether the next piece bypasses the caches. Every kEvery-th piece takes the way not in use,
  /// and more of the first pieces, because most of their cost is the first touch of the ring.
  bool next() {
    ++pieces_;
    const bool early = pieces_ > 2 && pieces_ < kEvery && std::has_single_bit(pieces_);
    return around() != (early || pieces_ % kEvery == 2);
  }

  /// Notes the cost of a piece.
  void measured(bool around, double cost);

  /// Bypassing the caches is better. It must be so by far, because the reader then takes longer.
  bool around() const { return around_ != 0 && through_ > kFar * around_; }

  static constexpr std::uint64_t kEvery = 64;

 private:
  static constexpr double kFar = 2;

  double through_ = 0;  ///< 0: not measured.
  double around_ = 0;
  std::uint64_t pieces_ = 0;
};

/// Copies in the way that has proved better. Thread: one at a time.
class RingWriter {
 public:
  /// Copies a piece into a ring.
  void copy(void* to, const void* from, std::size_t bytes);

  /// The better way, for other data that goes to the ring.
  kernels::CopyFn preferred() const;

 private:
  void copy_measured(bool around, void* to, const void* from, std::size_t bytes);

  RingPath path_;
};

}  // namespace horo::runtime
