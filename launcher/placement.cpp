// SPDX-License-Identifier: Apache-2.0
#include "launcher/placement.hpp"

#include <algorithm>

#include "base/board_header.hpp"

namespace horo::launcher {

namespace {

/// Cross ranks and sizes: among the hosts that have the same local rank, in host order.
void number_across_hosts(Placement& placement) {
  std::vector<int> hosts_with;
  for (const auto& host : placement.hosts) {
    hosts_with.resize(std::max(hosts_with.size(), host.ranks.size()), 0);
    for (std::size_t local = 0; local < host.ranks.size(); ++local)
      placement.ranks[host.ranks[local].index()].cross_rank = hosts_with[local]++;
  }
  for (auto& rank : placement.ranks) rank.cross_size = hosts_with[rank.local_rank.index()];
}

/// The most ranks of each host: its slots, or `ranks_per_host`. In the second case, hosts that are
/// not needed are left out.
Result<std::vector<int>> limits(const discovery::HostSet& hosts, const PlacementPolicy& policy) {
  std::vector<int> most;
  if (policy.ranks_per_host == 0) {
    for (const auto& host : hosts.hosts()) most.push_back(host.slots);
    return most;
  }
  const int each = policy.ranks_per_host;
  const auto wanted = static_cast<std::size_t>((policy.np - 1) / each + 1);
  if (wanted > hosts.size()) {
    return fail(Errc::invalid_argument,
                "-np {} at --ranks-per-host {} needs {} hosts, {} available ({}); give more with "
                "-H or fewer ranks with -np",
                policy.np, each, wanted, hosts.size(), describe(hosts));
  }
  for (std::size_t i = 0; i < wanted; ++i) {
    const auto& host = hosts.hosts()[i];
    if (host.slots < each) {
      return fail(Errc::invalid_argument,
                  "host '{}' has {} slots, --ranks-per-host {} wants more; write '{}:{}' to have "
                  "it take them, or a smaller number",
                  host.name, host.slots, each, host.name, each);
    }
    most.push_back(each);
  }
  return most;
}

std::vector<int> packed(const std::vector<int>& most, int np) {
  std::vector<int> counts(most.size(), 0);
  for (std::size_t i = 0; i < most.size() && np > 0; ++i) {
    counts[i] = std::min(most[i], np);
    np -= counts[i];
  }
  return counts;
}

/// Spreads ranks evenly: finds the level to which all hosts fill, then gives one more to the first
/// hosts that have room. The level is searched because going rank by rank would be slow for many
/// slots.
std::vector<int> levelled(const std::vector<int>& most, int np) {
  const auto at_level = [&](int level) {
    long long sum = 0;
    for (const int limit : most) sum += std::min(limit, level);
    return sum;
  };
  int low = 0;
  for (int high = np; low < high;) {
    const int middle = low + (high - low + 1) / 2;
    if (at_level(middle) <= np) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  auto rest = np - at_level(low);
  std::vector<int> counts;
  for (const int limit : most) {
    const bool more = limit > low && rest > 0;
    counts.push_back(std::min(limit, low) + (more ? 1 : 0));
    rest -= more ? 1 : 0;
  }
  return counts;
}

std::vector<PlacedHost> in_blocks(const discovery::HostSet& hosts, const std::vector<int>& counts) {
  std::vector<PlacedHost> placed;
  int next = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const auto& given = hosts.hosts()[i];
    auto& host =
        placed.emplace_back(PlacedHost{.name = given.name, .ranks = {}, .user = given.user});
    for (int local = 0; local < counts[i]; ++local) host.ranks.emplace_back(next++);
  }
  return placed;
}

/// Rank 0 goes to the first host, rank 1 to the second, and so on in rounds.
std::vector<PlacedHost> in_turn(const discovery::HostSet& hosts, const std::vector<int>& counts) {
  auto placed = in_blocks(hosts, counts);
  std::vector<std::size_t> sizes;
  for (auto& host : placed) {
    sizes.push_back(host.ranks.size());
    host.ranks.clear();
  }
  bool any = true;
  for (int next = 0; any;) {
    any = false;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (placed[i].ranks.size() == sizes[i]) continue;
      placed[i].ranks.emplace_back(next++);
      any = true;
    }
  }
  return placed;
}

std::vector<PlacedHost> assign(const discovery::HostSet& hosts, const std::vector<int>& most,
                               const PlacementPolicy& policy) {
  switch (policy.map_by) {
    case MapBy::pack:
      return in_blocks(hosts, packed(most, policy.np));
    case MapBy::spread:
      return in_blocks(hosts, levelled(most, policy.np));
    case MapBy::host:
      return in_turn(hosts, levelled(most, policy.np));
  }
  return {};
}

}  // namespace

Result<Placement> place(const discovery::HostSet& hosts, const PlacementPolicy& policy) {
  if (policy.np < 1 || policy.np > kMaxRanks) {
    return fail(Errc::invalid_argument, "-np {} must be a whole number from 1 to {}", policy.np,
                kMaxRanks);
  }
  if (hosts.slots() < policy.np) {
    return fail(Errc::invalid_argument,
                "{} slots wanted, {} available ({}); give more with -H or fewer ranks with -np",
                policy.np, hosts.slots(), describe(hosts));
  }
  HORO_TRY(const auto most, limits(hosts, policy));
  auto placed = assign(hosts, most, policy);
  for (const auto& host : placed) {
    if (host.count() > kMaxLocalRanks) {
      return fail(Errc::invalid_argument,
                  "-np {} puts {} ranks on host '{}'; at most {} fit on one host", policy.np,
                  host.count(), host.name, kMaxLocalRanks);
    }
  }
  return number_ranks(std::move(placed));
}

Placement number_ranks(std::vector<PlacedHost> hosts) {
  Placement placement{.hosts = std::move(hosts), .ranks = {}};
  std::size_t size = 0;
  for (const auto& host : placement.hosts) size += host.ranks.size();
  placement.ranks.resize(size);
  for (std::size_t h = 0; h < placement.hosts.size(); ++h) {
    const auto& ranks = placement.hosts[h].ranks;
    for (std::size_t local = 0; local < ranks.size(); ++local) {
      placement.ranks[ranks[local].index()] = {.rank = ranks[local],
                                               .host = h,
                                               .local_rank = LocalRank{static_cast<int>(local)},
                                               .local_size = static_cast<int>(ranks.size())};
    }
  }
  number_across_hosts(placement);
  return placement;
}

std::string describe_ranks(const std::vector<Rank>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1].value() == ranks[last].value() + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (last > i) text += fmt::format("-{}", ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace horo::launcher
