// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/by_hosts_place.hpp"

#include <algorithm>
#include <numeric>

namespace horo::runtime {

std::uint64_t ByHostsPlace::slice_of(std::uint64_t elements, int local) const {
  return local < hierarchy.owners ? share_of(elements, hierarchy.owners, local).count : 0;
}

std::uint64_t ByHostsPlace::first_of(std::uint64_t elements, int local) const {
  return local < hierarchy.owners ? share_of(elements, hierarchy.owners, local).first : 0;
}

Result<ByHostsPlace> by_hosts_place(const SetPlace& place) {
  Communicator set;
  set.position = place.position;
  set.hosts = place.hosts;
  set.members.resize(static_cast<std::size_t>(place.size()));
  std::iota(set.members.begin(), set.members.end(), 0);
  ByHostsPlace made;
  HORO_TRY(made.hierarchy, hierarchy_of(set));
  const int own_host = place.hosts[static_cast<std::size_t>(place.position)];
  const auto first = std::find(place.hosts.begin(), place.hosts.end(), own_host);
  made.first_here = static_cast<int>(first - place.hosts.begin());
  auto across = across_hosts(set, made.hierarchy);
  if (!across) return made;
  made.owners = std::move(across->members);
  std::sort(made.owners.begin(), made.owners.end());
  const auto own = std::find(made.owners.begin(), made.owners.end(), place.position);
  made.own = static_cast<std::size_t>(own - made.owners.begin());
  return made;
}

}  // namespace horo::runtime
