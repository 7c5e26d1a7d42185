// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/host_facts.hpp"

#include <cstdlib>

#include "launcher/protocol/free_ports.hpp"
#include "launcher/protocol/own_address.hpp"

namespace horo::launcher {

namespace {

constexpr const char* kSlurmStep = "SLURM_STEP_ID";  ///< Set where srun has started the agent.

}  // namespace

Result<protocol::Prepared> find_host_facts(const protocol::Prepare& order) {
  protocol::Prepared facts;
  HORO_TRY(facts.ports, free_ports(order.ports));
  HORO_TRY(facts.address, own_address_towards(order.launcher_address));
  facts.interface = interface_of(facts.address);
  return facts;
}

bool in_slurm_step() {
  return std::getenv(kSlurmStep) != nullptr;
}

}  // namespace horo::launcher
