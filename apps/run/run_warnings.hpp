// SPDX-License-Identifier: Apache-2.0
// Finds what the user has set and `horo run` does not act on.
#pragma once

#include <vector>

#include "apps/common/run_invocation.hpp"
#include "base/knobs/settings.hpp"
#include "launcher/plan/job_plan.hpp"

namespace horo::apps {

/// About the settings and `environment`, an array like environ. Pure.
std::vector<KnobWarning> run_warnings(const RunInvocation& invocation,
                                      const char* const* environment);

/// About the plan: a script whose later hosts do not count, a key for ssh that cannot be read, and
/// network interfaces that this machine, if it is one of the hosts, does not have. Blocks: for the
/// kernel's list.
std::vector<KnobWarning> plan_warnings(const RunInvocation& invocation,
                                       const launcher::JobPlan& plan);

/// The subjects of the warnings that ranks could repeat, for kWarnedVariable.
std::string subjects_of(const std::vector<KnobWarning>& warnings);

}  // namespace horo::apps
