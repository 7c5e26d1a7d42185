// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/tree/tree_starter.hpp"

#include <utility>

#include "launcher/starters/link/agent_link.hpp"

namespace horo::launcher {

TreeStarter::TreeStarter(Loop& loop, TreePlan plan, const std::vector<std::string>& names,
                         TreeWays ways)
    : loop_(loop), plan_(std::move(plan)), ways_(std::move(ways)), relays_(plan_.parents.size()) {
  for (const auto& parent : plan_.parents) {
    if (parent && relays_[*parent] == nullptr)
      relays_[*parent] = std::make_shared<AgentRelay>(names[*parent]);
  }
}

Result<std::unique_ptr<Agent>> TreeStarter::start(std::size_t host, const AgentSpec& spec,
                                                  AgentEvents& events) {
  const auto parent = plan_.parents[host];
  std::unique_ptr<Carrier> carrier;
  if (!parent) {
    HORO_TRY(carrier, ways_.from_here(host));
  } else {
    auto reach = ways_.from_there(host);
    reach.host = static_cast<std::uint32_t>(host);
    reach.heartbeat = spec.heartbeat;
    reach.connect_timeout = ways_.connect_timeout;
    std::vector<CarrierFactory> tries;
    for (auto above = parent; above; above = plan_.parents[*above]) {
      tries.emplace_back([this, relay = relays_[*above], reach] {
        return Result<std::unique_ptr<Carrier>>(make_relay_carrier(loop_, relay, reach));
      });
    }
    tries.emplace_back([this, host] { return ways_.from_here(host); });
    carrier = make_fallback_carrier(loop_, std::move(tries));
  }
  return open_agent(loop_, spec, std::move(carrier), {.agent = kAgentEndTimeout}, events,
                    relays_[host]);
}

}  // namespace horo::launcher
