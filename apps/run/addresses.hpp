// SPDX-License-Identifier: Apache-2.0
// Where ranks on several hosts find the launcher and each other: known when every host is ready.
#pragma once

#include <memory>
#include <vector>

#include "base/kv/server/server.hpp"
#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"

namespace horo::apps {

/// Serves the job's store at the addresses by which the hosts reach this machine, and no others,
/// and completes `agents` with it, with where rank 0 may listen for torch and JAX, with every
/// rank's address, and with the interface that torch's Gloo is to use. `facts` are by agent. Fails:
/// as Server::start; unavailable, when a host has no address.
Result<std::unique_ptr<kv::Server>> give_addresses(Loop& loop,
                                                   std::vector<launcher::AgentSpec>& agents,
                                                   std::vector<launcher::HostFacts> facts);

}  // namespace horo::apps
