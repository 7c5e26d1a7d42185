// SPDX-License-Identifier: Apache-2.0
// Which hosts of a generation can use the agents of the one before. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "launcher/placement.hpp"
#include "launcher/plan/start_plan.hpp"

namespace horo::launcher {

struct HostsOfPlan {
  const Placement& placement;
  const StartPlan& starts;
};

/// By host of `next`: the host of `before` that has the same name, user and way to start an agent;
/// none: there is no such host. Where agents start agents, all hosts are the same, or none is:
/// another tree has other connections.
std::vector<std::optional<std::size_t>> find_same_hosts(const HostsOfPlan& before,
                                                        const HostsOfPlan& next);

/// Whether both have the same hosts in the same order, started in the same ways.
bool is_same(const HostsOfPlan& before, const HostsOfPlan& next);

}  // namespace horo::launcher
