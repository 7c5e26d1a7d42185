// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/deadline.hpp"
#include "base/result.hpp"

namespace horo::launcher {

/// Hardware threads that the job may use on each host of CSM's `allocation`. CSM knows the cores;
/// lscpu, run by `jsrun` on a compute node, knows the threads of a core.
/// Blocks: for both programs, until `limit`.
/// Fails: unavailable, as ask_csm and where an answer lacks a number.
Result<int> count_csm_cpus(const std::string& jsrun, const std::string& allocation,
                           WaitLimit limit);

}  // namespace horo::launcher
