// SPDX-License-Identifier: Apache-2.0
// After a poison, operations end only when no peer can touch their buffers any more. The agent
// kills ranks that do not acknowledge the poison, if it knows of it. Where a rank has poisoned the
// board, the agent does not know, and the other ranks kill those that do not acknowledge.
#pragma once

#include "runtime/host/host_memory.hpp"

namespace horo::runtime {

/// Sends SIGKILL to the other ranks of this host that have not acknowledged the poison: mostly
/// stopped ones. A further call marks those as dead that have ended or cannot run any more.
/// Blocks: no.
void end_silent_ranks(HostMemory& host);

}  // namespace horo::runtime
