// SPDX-License-Identifier: Apache-2.0
// Which of a host's addresses the other hosts reach: found by trying, not by the interface's name.
#pragma once

#include <string>

#include "base/result.hpp"
#include "runtime/backends/communicator.hpp"

namespace horo::runtime {

/// An address of this host for the other members to connect to. On one host that is the loopback.
/// Else every member listens for a moment and tells its addresses; the last rank of the host before
/// it tries them and says which one answered. So a bridge that has the same address on every host,
/// or a network that is not connected, is passed over.
/// Thread: one at a time. Blocks: until that rank has come, `start_timeout` at most.
/// Fails: unavailable (none is reached; names them), timed_out (names the key of who has not come).
Result<std::string> reachable_address(const Communicator& communicator);

/// Position of the rank that tries the addresses of `position`; -1 when all are on one host.
int prober_of(const Communicator& communicator, int position);

}  // namespace horo::runtime
