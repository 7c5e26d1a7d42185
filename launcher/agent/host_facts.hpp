// SPDX-License-Identifier: Apache-2.0
// An agent tells the launcher these facts about its host.
#pragma once

#include "base/result.hpp"
#include "launcher/protocol/protocol.hpp"

namespace horo::launcher {

/// Finds free ports, and the address at which the launcher's host reaches this one. Fails:
/// unavailable, io.
Result<protocol::Prepared> find_host_facts(const protocol::Prepare& order);

/// Whether srun has started this agent. Slurm may signal a step without its job.
bool in_slurm_step();

}  // namespace horo::launcher
