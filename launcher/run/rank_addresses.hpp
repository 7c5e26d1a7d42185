// SPDX-License-Identifier: Apache-2.0
// Addresses by which ranks on several hosts find the launcher and each other. They are known only
// once every host's agent has connected.
#pragma once

#include <memory>
#include <vector>

#include "base/kv/server/server.hpp"
#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// Starts the job's key-value server on those addresses of this machine that the hosts use to reach
/// it, and on no others. Then completes `agents`: the server's address, the address and port where
/// rank 0 may listen for torch and JAX, every rank's address, and the network interface for torch's
/// Gloo. `facts` has one entry per agent.
/// Fails: as Server::start; unavailable, when no address leads from the hosts to this machine.
Result<std::unique_ptr<kv::Server>> publish_addresses(Loop& loop, std::vector<AgentSpec>& agents,
                                                      std::vector<HostFacts> facts);

}  // namespace horo::launcher
