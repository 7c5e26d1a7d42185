// SPDX-License-Identifier: Apache-2.0
#include "launcher/run/rank_addresses.hpp"

#include <algorithm>
#include <utility>

#include "launcher/protocol/own_address.hpp"

namespace horo::launcher {

namespace {

constexpr const char* kGlooInterface = "GLOO_SOCKET_IFNAME";

/// Fills in the entries of this machine: the address by which the other hosts reach it.
Status locate_this_machine(std::vector<HostFacts>& facts) {
  const auto other = std::find_if(facts.begin(), facts.end(),
                                  [](const HostFacts& f) { return !f.launcher_address.empty(); });
  if (other == facts.end())
    return fail(Errc::unavailable, "no address of this machine leads to the other hosts");
  const auto address = other->launcher_address;
  for (auto& host : facts) {
    if (!host.address.empty()) {
      if (host.launcher_address.empty()) host.launcher_address = address;
      continue;
    }
    host.address = host.launcher_address = address;
    host.interface = interface_of(address);
  }
  return {};
}

/// Each address of this machine once, in the order of the hosts that use it.
std::vector<kv::Address> listeners_of(const std::vector<HostFacts>& facts) {
  std::vector<kv::Address> listeners;
  for (const auto& host : facts) {
    const kv::Address address{host.launcher_address, 0};
    if (std::find(listeners.begin(), listeners.end(), address) == listeners.end())
      listeners.push_back(address);
  }
  return listeners;
}

/// host:port of every rank, by rank. Empty when the plan left them out because TF_CONFIG would be
/// too long.
WorkerAddresses worker_addresses(const std::vector<AgentSpec>& agents,
                                 const std::vector<HostFacts>& facts) {
  const auto& first = agents.front().ranks.front();
  if (first.worker_addresses.empty()) return {};
  std::vector<std::string> addresses(static_cast<std::size_t>(first.size));
  for (std::size_t i = 0; i < agents.size(); ++i) {
    for (const auto& rank : agents[i].ranks)
      addresses[rank.rank.index()] =
          with_port(facts[i].address, facts[i].ports.at(rank.local_rank.index() + 1));
  }
  return addresses;
}

std::size_t host_of_rank_zero(const std::vector<AgentSpec>& agents) {
  const auto found = std::find_if(agents.begin(), agents.end(), [](const AgentSpec& agent) {
    return agent.ranks.front().rank == Rank{0};
  });
  return static_cast<std::size_t>(found - agents.begin()) % agents.size();
}

bool sets(const Environment& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(),
                     [name](const auto& variable) { return variable.first == name; });
}

}  // namespace

Result<std::unique_ptr<kv::Server>> publish_addresses(Loop& loop, std::vector<AgentSpec>& agents,
                                                      std::vector<HostFacts> facts) {
  HORO_TRY_STATUS(locate_this_machine(facts));
  auto listeners = listeners_of(facts);
  HORO_TRY(auto server, kv::Server::start(loop, agents.front().secret, {.listen = listeners}));
  const auto bound = server->addresses();
  const auto addresses = worker_addresses(agents, facts);
  const auto zero = host_of_rank_zero(agents);
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const auto listener =
        std::find(listeners.begin(), listeners.end(), kv::Address{facts[i].launcher_address, 0});
    const auto& place = bound[static_cast<std::size_t>(listener - listeners.begin())];
    for (auto& rank : agents[i].ranks) {
      rank.rendezvous = kv::to_string(place);
      rank.master_address = facts[zero].address;
      rank.master_port = facts[zero].ports.front();
      rank.worker_addresses = addresses;
    }
    auto& environment = agents[i].environment;
    const auto& common = agents[i].common;
    if (!facts[i].interface.empty() && !sets(environment, kGlooInterface) &&
        (common == nullptr || !sets(*common, kGlooInterface)))
      environment.emplace_back(kGlooInterface, facts[i].interface);
  }
  return server;
}

}  // namespace horo::launcher
