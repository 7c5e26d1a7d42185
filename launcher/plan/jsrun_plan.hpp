// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/plan/mpi_plan.hpp"

namespace horo::launcher {

/// Blocks: for CSM's and jsrun's answers about the job's hosts.
/// Fails: invalid_argument (not a job of LSF), not_found (no jsrun); as count_csm_cpus,
/// check_rank_order and split_words.
Result<MpiFacts> probe_jsrun(const JobRequest& request, const Placement& placement);

/// The jsrun that starts the ranks; `environment` is what they inherit. Pure.
/// Fails: as split_words and compose_erf.
Result<MpiPlan> plan_jsrun(const JobRequest& request, const MpiFacts& facts,
                           const Placement& placement, const Environment& environment);

/// Puts the path of the resource file that `plan` needs into its command line.
void name_erf(MpiPlan& plan, const std::string& path);

}  // namespace horo::launcher
