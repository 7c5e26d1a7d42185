// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/ranks/rank_set.hpp"

namespace horo::launcher {

/// For `horo-agent --dial-in`, which another system (mpirun, jsrun, ...) has started to own one
/// rank. Connects to the launcher and makes that connection this process's standard input and
/// output. Returns what the rank gets from this process: its environment, and the descriptors over
/// which it speaks to the MPI's own daemon.
/// Blocks: until connected, 20 s at most. Fails: as read_rank_claim and dial_launcher; io.
Result<Inheritance> dial_in();

}  // namespace horo::launcher
