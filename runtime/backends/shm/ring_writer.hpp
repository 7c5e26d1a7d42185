// SPDX-License-Identifier: Apache-2.0
// How a rank writes into its ring, whose lines the peers have read before.
//
// Between cores that share a cache the usual way is best: the peer finds the bytes in that cache.
// Between cores that do not (other chiplets or sockets, and virtual processors that the host moves
// about) each line has to be taken from the peer's cache first: measured on Zen 4, 2 GB/s, where
// stores around the caches reach 30. Which it is cannot be asked for, and may change at any time.
// So both are measured while they work, the one not in use now and then.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "runtime/backends/shm/kernels/kernels.hpp"

namespace horo::runtime {

/// The choice alone. Costs are in any unit per byte.
class RingPath {
 public:
  /// Whether the next piece goes around the caches. Every kEvery-th takes the other way, and more
  /// of the first ones: what they cost is mostly the first touch of the ring.
  bool next() {
    ++pieces_;
    const bool early = pieces_ > 2 && pieces_ < kEvery && std::has_single_bit(pieces_);
    return around() != (early || pieces_ % kEvery == 2);
  }

  /// What a piece took.
  void measured(bool around, double cost);

  /// Whether that is the better way: it must be so by far, as it costs the reader more.
  bool around() const { return around_ != 0 && through_ > kFar * around_; }

  static constexpr std::uint64_t kEvery = 64;

 private:
  static constexpr double kFar = 2;

  double through_ = 0;  ///< 0: not measured.
  double around_ = 0;
  std::uint64_t pieces_ = 0;
};

class RingWriter {
 public:
  /// Copies a piece into a ring.
  void copy(void* to, const void* from, std::size_t bytes);

  /// For what else goes there.
  kernels::CopyFn preferred() const;

 private:
  void copy_measured(bool around, void* to, const void* from, std::size_t bytes);

  RingPath path_;
};

}  // namespace horo::runtime
