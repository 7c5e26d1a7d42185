// SPDX-License-Identifier: Apache-2.0
// Hosts and a policy become a rank table. Pure: same input, same table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "discovery/host.hpp"

namespace horo::launcher {

struct PlacementPolicy {
  int np = 1;  ///< Exactly this many ranks.
};

struct PlacedRank {
  Rank rank{0};
  std::size_t host = 0;  ///< Index in Placement::hosts.
  LocalRank local_rank{0};
  int local_size = 1;  ///< Ranks on the same host.
  int cross_rank = 0;  ///< Index of its host among the hosts that have this local rank.
  int cross_size = 1;  ///< Number of those hosts.

  friend bool operator==(const PlacedRank&, const PlacedRank&) = default;
};

struct PlacedHost {
  std::string name;
  Rank first{0};  ///< Its ranks follow each other from here.
  int count = 0;  ///< At least 1: a host without ranks is left out.

  friend bool operator==(const PlacedHost&, const PlacedHost&) = default;
};

struct Placement {
  std::vector<PlacedHost> hosts;
  std::vector<PlacedRank> ranks;  ///< By rank.

  const PlacedHost& host_of(Rank rank) const { return hosts[ranks[rank.index()].host]; }
};

/// Fills a host before the next, in their order. Fails: invalid_argument, for np below 1, more
/// ranks on one host than kMaxLocalRanks, or too few slots (naming wanted and available).
Result<Placement> place(const discovery::HostSet& hosts, const PlacementPolicy& policy);

}  // namespace horo::launcher
