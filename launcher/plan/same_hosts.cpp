// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/same_hosts.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace horo::launcher {

namespace {

bool is_same_host(const HostsOfPlan& before, std::size_t old, const HostsOfPlan& next,
                  std::size_t host) {
  const auto& a = before.placement.hosts[old];
  const auto& b = next.placement.hosts[host];
  return a.name == b.name && a.user == b.user &&
         before.starts.hosts[old] == next.starts.hosts[host];
}

}  // namespace

bool is_same(const HostsOfPlan& before, const HostsOfPlan& next) {
  const auto count = next.placement.hosts.size();
  if (before.placement.hosts.size() != count || before.starts.tree != next.starts.tree)
    return false;
  for (std::size_t host = 0; host < count; ++host) {
    if (!is_same_host(before, host, next, host)) return false;
  }
  return true;
}

std::vector<std::optional<std::size_t>> find_same_hosts(const HostsOfPlan& before,
                                                        const HostsOfPlan& next) {
  std::vector<std::optional<std::size_t>> same(next.placement.hosts.size());
  const bool tree = before.starts.tree.levels > 1 || next.starts.tree.levels > 1;
  if (tree && !is_same(before, next)) return same;
  std::unordered_map<std::string_view, std::size_t> by_name;
  for (std::size_t old = 0; old < before.placement.hosts.size(); ++old)
    by_name.emplace(before.placement.hosts[old].name, old);
  for (std::size_t host = 0; host < same.size(); ++host) {
    const auto found = by_name.find(next.placement.hosts[host].name);
    if (found != by_name.end() && is_same_host(before, found->second, next, host))
      same[host] = found->second;
  }
  return same;
}

}  // namespace horo::launcher
