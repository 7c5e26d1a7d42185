// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/clock.hpp"
#include "launcher/elastic/membership.hpp"
#include "launcher/job/restart_policy.hpp"

namespace horo::launcher {

/// Whether an elastic job that has ended is started again as a whole. If a worker failed in its
/// last generation, that worker's end decides as in an ordinary job; else the job was lost with its
/// hosts, and a new start may help. `state` has finished; `earlier` are the times of its restarts.
/// Pure.
RestartDecision decide_restart(const RestartPolicy& policy, const MembershipState& state,
                               const JobEnd& end, const std::vector<TimePoint>& earlier,
                               TimePoint now);

}  // namespace horo::launcher
