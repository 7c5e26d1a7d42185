// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/run/plan.hpp"

namespace horo::apps {

/// The mpirun that starts the ranks of `plan`; `environment` is what the ranks inherit. Blocks:
/// until mpirun has said whose it is.
/// Fails: not_found (no mpirun, no horo-agent), and as ask_for_mpi, split_words, compose_mpirun.
Result<MpiPlan> plan_mpirun(const RunInvocation& invocation, const Plan& plan,
                            const Environment& environment, int cores);

/// Whether an mpirun can number ranks so, which fills a host before the next; `flag` is its own.
/// Fails: unsupported.
Status check_rank_order(const launcher::Placement& placement, std::string_view flag);

/// Takes out what an MPI has told another rank.
void forget_other_ranks(Environment& environment);

}  // namespace horo::apps
