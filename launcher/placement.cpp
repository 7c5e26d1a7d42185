// SPDX-License-Identifier: Apache-2.0
#include "launcher/placement.hpp"

#include <algorithm>

#include "base/board_header.hpp"

namespace horo::launcher {

namespace {

/// Cross ranks and sizes: among the hosts that have the same local rank, in host order.
void number_across_hosts(Placement& placement) {
  int most = 0;
  for (const auto& host : placement.hosts) most = std::max(most, host.count);
  std::vector<int> hosts_with(static_cast<std::size_t>(most), 0);
  for (auto& rank : placement.ranks) rank.cross_rank = hosts_with[rank.local_rank.index()]++;
  for (auto& rank : placement.ranks) rank.cross_size = hosts_with[rank.local_rank.index()];
}

}  // namespace

Result<Placement> place(const discovery::HostSet& hosts, const PlacementPolicy& policy) {
  if (policy.np < 1) {
    return fail(Errc::invalid_argument, "-np {} must be a whole number from 1 up", policy.np);
  }
  if (hosts.slots() < policy.np) {
    return fail(Errc::invalid_argument,
                "{} slots wanted, {} available ({}); give more with -H or fewer ranks with -np",
                policy.np, hosts.slots(), describe(hosts));
  }
  Placement placement;
  int next = 0;
  for (const auto& host : hosts.hosts()) {
    const int count = std::min(host.slots, policy.np - next);
    if (count == 0) break;
    if (count > kMaxLocalRanks) {
      return fail(Errc::invalid_argument,
                  "-np {} puts {} ranks on host '{}'; at most {} fit on one host", policy.np, count,
                  host.name, kMaxLocalRanks);
    }
    placement.hosts.push_back({.name = host.name, .first = Rank{next}, .count = count});
    for (int local = 0; local < count; ++local) {
      placement.ranks.push_back({.rank = Rank{next++},
                                 .host = placement.hosts.size() - 1,
                                 .local_rank = LocalRank{local},
                                 .local_size = count});
    }
  }
  number_across_hosts(placement);
  return placement;
}

}  // namespace horo::launcher
