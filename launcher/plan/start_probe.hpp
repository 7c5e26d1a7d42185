// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "base/knobs/settings.hpp"
#include "launcher/placement.hpp"
#include "launcher/plan/start_plan.hpp"

namespace horo::launcher {

/// Finds out how each host's agent can be started. `lookup` works like getenv.
/// Programs that it runs end when the descriptor `cancel` is readable; -1: there is none.
/// Blocks: for batch systems, and up to a minute for the hosts' ssh configuration.
/// Fails: as BatchSystem::find and find_ssh_routes; invalid_argument, for a host that the requested
/// batch system does not have, or another user's login on this machine.
Result<StartPlan> probe_starts(const Placement& placement, const Settings& settings,
                               const std::function<const char*(const char*)>& lookup, int cancel);

}  // namespace horo::launcher
