// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/loop/loop.hpp"
#include "launcher/placement.hpp"
#include "launcher/plan/start_plan.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// Starts each host's agent by the method that `plan` chose for it, through the hosts that the
/// plan's tree puts in between. A host that cannot connect to another within `connect_timeout`
/// leaves that one to the agent above it, or to this process. `loop` outlives the starter; `plan`
/// is copied.
std::unique_ptr<Starter> make_mixed_starter(Loop& loop, const Placement& placement,
                                            const StartPlan& plan, Duration connect_timeout);

}  // namespace horo::launcher
