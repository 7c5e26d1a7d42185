// SPDX-License-Identifier: Apache-2.0
// Tags of the messages between two ranks. All process sets of a job may use one MPI communicator,
// and each has tags of its own there. Some MPIs have few tags: UCX has 2^23. Pure.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "runtime/backends/communicator.hpp"

namespace horo::runtime {

inline constexpr unsigned kSlotBits = 9;  ///< Which communicator; Communicator::slot.
inline constexpr unsigned kSegmentBits = 3;
inline constexpr unsigned kNumberBits = 10;
inline constexpr int kMostTag = (1 << (kSlotBits + kSegmentBits + kNumberBits)) - 1;
static_assert(1 << kSlotBits >= kMostSlots);

/// A segment begins only when the oldest one in flight is fewer segments back than this.
inline constexpr std::uint64_t kMostSegmentsApart = std::uint64_t{1} << kSegmentBits;

/// `segment` and `number` count on without an end. Equal tags do not mix messages up: those of a
/// segment between two ranks are sent in the order of their numbers, they are received in that
/// order, and MPI keeps the order of equal tags.
inline int tag_of(int slot, std::uint64_t segment, std::uint32_t number) {
  const auto in_bits = [](std::uint64_t value, unsigned bits) {
    return static_cast<int>(value % (std::uint64_t{1} << bits));
  };
  return (slot << (kSegmentBits + kNumberBits)) | (in_bits(segment, kSegmentBits) << kNumberBits) |
         in_bits(number, kNumberBits);
}

/// `bound`: the largest tag of this MPI. Fails: unsupported.
inline Status check_tag_bound(int bound) {
  if (bound >= kMostTag) return {};
  return fail(Errc::unsupported,
              "this MPI has tags up to {} only, horo needs {}; choose another transport of this "
              "MPI, or HORO_CPU_OPERATIONS=tcp",
              bound, kMostTag);
}

}  // namespace horo::runtime
