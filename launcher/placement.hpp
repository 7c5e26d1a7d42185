// SPDX-License-Identifier: Apache-2.0
// Which rank runs on which host. Pure: the same hosts and policy give the same table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/knobs/choices.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "discovery/host.hpp"

namespace horo::launcher {

inline constexpr int kMaxRanks = 1'000'000;

struct PlacementPolicy {
  int np = 1;  ///< Exactly this many ranks.
  MapBy map_by = MapBy::pack;
  /// The most ranks on one host, which must have as many slots; 0: as many as it has slots.
  int ranks_per_host = 0;
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
  std::vector<Rank> ranks;  ///< By local rank, ascending. Hosts without ranks are left out.
  std::string user{};       ///< The user to log in as; empty: as configured.

  int count() const { return static_cast<int>(ranks.size()); }

  friend bool operator==(const PlacedHost&, const PlacedHost&) = default;
};

struct Placement {
  std::vector<PlacedHost> hosts;
  std::vector<PlacedRank> ranks;  ///< By rank.

  const PlacedHost& host_of(Rank rank) const { return hosts[ranks[rank.index()].host]; }

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Fails: invalid_argument, for np out of range, more ranks on one host than kMaxLocalRanks, or too
/// few slots or hosts (naming wanted and available).
Result<Placement> place(const discovery::HostSet& hosts, const PlacementPolicy& policy);

/// Numbers local and cross ranks from the ranks of each host. `hosts` have every rank from 0 up
/// once, each host's in ascending order.
Placement number_ranks(std::vector<PlacedHost> hosts);

/// "0-3,8", for people; short for any number of ranks.
std::string describe_ranks(const std::vector<Rank>& ranks);

}  // namespace horo::launcher
