// SPDX-License-Identifier: Apache-2.0
// How much of the ranks' output may be in transit to its readers, and how much has arrived.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/strong.hpp"

namespace horo::launcher {

/// Bytes in transit allowed for each of `ranks` ranks: enough to keep one rank at full speed, and
/// limited in total.
constexpr std::uint32_t output_window(std::size_t ranks) {
  constexpr std::size_t kAll = std::size_t{16} << 20U;
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(kAll / std::max<std::size_t>(ranks, 1), 4096, 256 * 1024));
}

/// Tells which rank's output has been delivered, from how far a common stream has been written.
/// Thread: owner.
class DeliveryTracker {
 public:
  /// Everything up to `position` of the stream includes `bytes` of `rank`.
  void add(Rank rank, std::size_t bytes, std::uint64_t position) {
    // Short chunks of one rank are joined, so that the list stays short.
    if (!marks_.empty() && marks_.back().rank == rank && marks_.back().bytes < kGrain) {
      marks_.back().bytes += bytes;
      marks_.back().position = position;
    } else {
      marks_.push_back({position, rank, bytes});
    }
  }

  /// Calls `take(Rank, bytes)` for everything that the first `done` bytes of the stream include.
  template <typename Take>
  void advance(std::uint64_t done, Take&& take) {
    for (; !marks_.empty() && marks_.front().position <= done; marks_.pop_front())
      take(marks_.front().rank, marks_.front().bytes);
  }

 private:
  static constexpr std::size_t kGrain = 4096;

  struct Mark {
    std::uint64_t position;
    Rank rank;
    std::size_t bytes;
  };

  std::deque<Mark> marks_;
};

}  // namespace horo::launcher
