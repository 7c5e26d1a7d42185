// SPDX-License-Identifier: Apache-2.0
// Which ranks work together when a set spans hosts with several ranks each. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/backends/backend.hpp"
#include "runtime/backends/communicator.hpp"

namespace horo::runtime {

/// A set as hosts and ranks on them. As many local ranks of each host as the smallest one has own
/// a slice of every bucket; the others only bring their input and get the result.
struct Hierarchy {
  int hosts = 1;
  int ranks = 1;
  int local_ranks = 1;
  int local_rank = 0;
  int owners = 1;
  int most_local = 1;  ///< Ranks of the largest host.

  bool owns() const { return local_rank < owners; }
};

/// Fails: as check().
Result<Hierarchy> hierarchy_of(const Communicator& world);

/// This rank and those of the same local rank on the other hosts; nothing where it owns no slice.
std::optional<Communicator> across_hosts(const Communicator& world, const Hierarchy& hierarchy);

/// A stretch of a bucket on its way: reduce-scatter inside the host, all-reduce of this rank's
/// slice across the hosts, all-gather inside.
struct Leg {
  Bucket scatter;
  Bucket across;  ///< No parts where this rank owns nothing of it.
  Bucket gather;
};

/// Elements [first, first + count) of one tensor of a bucket.
struct Cut {
  std::size_t part = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// A bucket in stretches of at most `bytes`, the same on all ranks.
std::vector<std::vector<Cut>> cut_bucket(const Bucket& bucket, std::uint64_t bytes);

/// Elements of this rank's slice of a stretch.
std::uint64_t slice_elements(const std::vector<Cut>& cuts, const Hierarchy& hierarchy);

/// `slice` has room for them.
Leg make_leg(const Bucket& bucket, const std::vector<Cut>& cuts, const Hierarchy& hierarchy,
             std::byte* slice);

/// Whether the parts of the way can compute what the whole would: not averages of integers, whose
/// sum inside a host may overflow, nor products of float16 for the same reason, and not Adasum.
bool can_run_in_parts(const Signature& like);

}  // namespace horo::runtime
