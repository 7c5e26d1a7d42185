// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/cluster/cluster_world.hpp"

namespace horo::runtime::sim {

namespace {

std::vector<tree::HostRanks> hosts_of(const Cluster& cluster) {
  std::vector<tree::HostRanks> hosts;
  int rank = 0;
  for (const auto& group : cluster.groups) {
    for (int i = 0; i < group.count; ++i) {
      tree::HostRanks host{.name = fmt::format("node{:05}", hosts.size()), .ranks = {}};
      for (int r = 0; r < group.ranks; ++r) host.ranks.emplace_back(rank++);
      hosts.push_back(std::move(host));
    }
  }
  return hosts;
}

}  // namespace

WorldParams params_of(const Cluster& cluster) {
  WorldParams params{.hosts = hosts_of(cluster),
                     .radix = cluster.radix,
                     .heartbeat_timeout = cluster.heartbeat_timeout,
                     .seed = cluster.seed};
  params.links.jitter = cluster.jitter;
  return params;
}

ClusterLinks links_of(const Cluster& cluster) {
  ClusterLinks links{.hosts = {}, .inside = cluster.inside};
  for (const auto& group : cluster.groups)
    links.hosts.insert(links.hosts.end(), static_cast<std::size_t>(group.count), group.link);
  return links;
}

}  // namespace horo::runtime::sim
