// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "apps/run/plan.hpp"

namespace horo::apps {

/// The jsrun that starts the ranks of `plan`; `environment` is what the ranks inherit, `lookup` as
/// getenv. Blocks: for what CSM and jsrun say of the job's hosts.
/// Fails: invalid_argument (no job of LSF), not_found (no jsrun), and as count_csm_cpus,
/// split_words and compose_erf.
Result<MpiPlan> plan_jsrun(const RunInvocation& invocation, const Plan& plan,
                           const Environment& environment,
                           const std::function<const char*(const char*)>& lookup);

/// The file that `plan` needs is at `path`.
void name_erf(MpiPlan& plan, const std::string& path);

/// Hardware threads that the job may use on each host of CSM's `allocation`, whose `jsrun` knows
/// how many a core has. Blocks: for both, `patience` at most.
/// Fails: unavailable, as ask_csm and where an answer lacks a number.
Result<int> count_csm_cpus(const std::string& jsrun, const std::string& allocation,
                           Duration patience);

}  // namespace horo::apps
