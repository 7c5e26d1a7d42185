// SPDX-License-Identifier: Apache-2.0
// Which ranks work together in a set on several hosts with several ranks each. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/backends/communicator.hpp"
#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// How a set's ranks are spread over hosts. On each host as many ranks own a slice of every bucket
/// as the smallest host has; the others only bring their input and get the result.
struct Hierarchy {
  int hosts = 1;
  int ranks = 1;
  int local_ranks = 1;  ///< Ranks of this host.
  int local_rank = 0;
  int owners = 1;      ///< Ranks of each host that own a slice.
  int most_local = 1;  ///< Ranks of the largest host.

  bool owns() const { return local_rank < owners; }
};

/// Fails: as check().
Result<Hierarchy> hierarchy_of(const Communicator& world);

/// This rank and the ranks with its local rank on the other hosts; nothing if it owns no slice.
std::optional<Communicator> across_hosts(const Communicator& world, const Hierarchy& hierarchy);

/// The three steps of a stretch.
struct Leg {
  Bucket scatter;  ///< Reduce-scatter inside the host.
  Bucket across;   ///< All-reduce of this rank's slice between hosts. No parts: it owns none.
  Bucket gather;   ///< All-gather inside the host.
};

/// Elements [first, first + count) of one tensor of a bucket.
struct Cut {
  std::size_t part = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Cuts a bucket into stretches of at most `bytes`, the same on all ranks.
std::vector<std::vector<Cut>> cut_bucket(const Bucket& bucket, std::uint64_t bytes);

/// Elements of this rank's slice of a stretch.
std::uint64_t slice_elements(const std::vector<Cut>& cuts, const Hierarchy& hierarchy);

/// The steps of the stretch `cuts`; `slice` has room for slice_elements().
Leg make_leg(const Bucket& bucket, const std::vector<Cut>& cuts, const Hierarchy& hierarchy,
             std::byte* slice);

/// Whether the steps compute what one step among all ranks would. Averages of integers and products
/// of float16 may overflow inside a host; Adasum needs all inputs at once.
bool can_run_in_parts(const Signature& like);

}  // namespace horo::runtime
