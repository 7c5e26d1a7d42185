// SPDX-License-Identifier: Apache-2.0
// After a poison an operation ends only when no peer can touch its buffers any more. Whoever
// watches the ranks ends those that do not say so, if it knows of the poison; where a rank has
// poisoned the board itself, the ranks have to.
#pragma once

#include "runtime/coordinator/host_memory.hpp"

namespace horo::runtime {

/// Sends SIGKILL to the other ranks of this host that have not let go of their peers' memory:
/// stopped ones, mostly. Called again it counts as dead who is ended or can no more run.
/// Blocks: no.
void end_silent_ranks(HostMemory& host);

}  // namespace horo::runtime
