// SPDX-License-Identifier: Apache-2.0
#include "discovery/repeated_hosts.hpp"

#include <algorithm>

#include "base/board_header.hpp"
#include "discovery/this_machine.hpp"

namespace horo::discovery {

Status check_repeated_hosts(const HostSet& hosts, const RepeatLimits& limits) {
  for (const auto& host : hosts.hosts()) {
    if (host.entries <= 1) continue;
    if (host.slots > kMaxLocalRanks) {
      return fail(
          Errc::invalid_argument,
          "host '{0}' is on {1} lines, which give it {2} slots, and a host has at most {3}; "
          "print each host once, as {0}:SLOTS",
          host.name, host.entries, host.slots, kMaxLocalRanks);
    }
    const int most = std::max(limits.own_cores, limits.ranks);
    if (limits.ranks_are_limited || host.slots <= most) continue;
    if (!is_this_machine(host.name)) continue;
    return fail(Errc::invalid_argument,
                "host '{0}' is on {1} lines, which give it {2} slots, but this machine has {3} "
                "cores; print it once, as {0}:{2}, or limit the job with --max-np",
                host.name, host.entries, host.slots, limits.own_cores);
  }
  return {};
}

}  // namespace horo::discovery
