// SPDX-License-Identifier: Apache-2.0
// Connections between some ranks over Gloo's TCP transport.
#pragma once

#include <memory>

#include <gloo/context.h>

#include "base/result.hpp"
#include "runtime/backends/communicator.hpp"

namespace horo::runtime {

/// Connects to each other member, from the interface or address that the communicator names, else
/// from one that the others reach.
/// Thread: one at a time. Blocks: until all have connected, at most `start_timeout` for each.
/// Fails: timed_out (names the key of the rank that is missing), invalid_argument (no such
/// interface or address), unavailable (no address of this host can be reached), peer_lost, and as
/// the rendezvous store.
Result<std::shared_ptr<gloo::Context>> connect_mesh(const Communicator& communicator);

}  // namespace horo::runtime
