// SPDX-License-Identifier: Apache-2.0
// The membership machine's sentences for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/elastic/membership.hpp"

namespace horo::launcher {

/// "1 slot", "3 slots".
std::string count(int number, std::string_view noun);

/// "3 slots are offered: a:2, b:1; host c is put aside (...)"; ends after some hosts.
std::string describe_offer(const MembershipState& state);

/// "host a: worker 1 failed; host b: its agent was lost"; ends after some hosts.
std::string describe_hosts_out(const MembershipState& state);

/// "worker 2 on host b and worker 3 on host c"; ends after some workers.
std::string describe_workers(const MembershipState& state,
                             const std::vector<const ElasticWorker*>& workers);

/// Why there are too few members for the next generation.
std::string describe_shortage(const MembershipState& state);

}  // namespace horo::launcher
