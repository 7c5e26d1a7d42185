// SPDX-License-Identifier: Apache-2.0
// Finds the address at which other hosts reach this one by trying, not by the interface's name.
#pragma once

#include <string>

#include "base/result.hpp"
#include "runtime/backends/communicator.hpp"

namespace horo::runtime {

/// An address of this host for the other members to connect to: the loopback address if all are on
/// one host. Else every member listens for a moment and publishes its addresses; the last rank of
/// the host before it tries them and reports which one answered. So a bridge that has the same
/// address on every host, or a network that is not connected, is never chosen.
/// Thread: one at a time. Blocks: until that rank has answered, at most `start_timeout`.
/// Fails: unavailable (none is reached; names them), timed_out (names the key of the rank that is
/// missing).
Result<std::string> reachable_address(const Communicator& communicator);

/// Position of the rank that tries the addresses of `position`; -1 when all are on one host.
int prober_of(const Communicator& communicator, int position);

}  // namespace horo::runtime
