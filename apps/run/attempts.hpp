// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/run/plan.hpp"
#include "apps/run/session.hpp"

namespace horo::apps {

/// Runs `plan`, and anew after failures that --max-restarts allows: planned again, with addresses,
/// ports and secrets of its own, without the hosts that were lost as long as the others have room,
/// and with all of them where they have not. The exit code of `horo run`. Blocks.
/// Fails: as run_plan, of the first attempt.
Result<int> run_attempts(const RunInvocation& invocation, const PlanContext& context, Plan plan,
                         RunFiles& files, History& history);

}  // namespace horo::apps
