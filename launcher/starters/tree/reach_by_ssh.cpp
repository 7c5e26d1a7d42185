// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/program/program_carrier.hpp"
#include "launcher/starters/ssh/ssh_carrier.hpp"
#include "launcher/starters/tree/reach.hpp"
#include "launcher/starters/tree/reached_agents.hpp"

namespace horo::launcher {

namespace {

SshRoute route_of(const protocol::Reach& reach) {
  SshRoute route{.host = reach.name,
                 .name = reach.target,
                 .known_as = reach.known_as,
                 .port = static_cast<std::uint16_t>(reach.port),
                 .user = reach.user,
                 .global_known_hosts = reach.global_known_hosts,
                 .unknown_keys = reach.accept_unknown ? UnknownKeys::accept : UnknownKeys::refuse};
  for (const auto& file : reach.identities) route.identities.push_back(expand_home(file));
  for (const auto& file : reach.known_hosts) route.known_hosts.push_back(expand_home(file));
  return route;
}

}  // namespace

protocol::Reach reach_by_ssh(const SshRoute& route, const SshWishes& wishes,
                             const std::string& command_line) {
  protocol::Reach reach{.name = route.host,
                        .target = route.name,
                        .known_as = route.known_as,
                        .port = route.port,
                        .user = route.user,
                        .global_known_hosts = route.global_known_hosts,
                        .accept_unknown = route.unknown_keys == UnknownKeys::accept,
                        .command_line = command_line};
  for (const auto& file : route.identities) reach.identities.push_back(shorten_home(file));
  for (const auto& file : route.known_hosts) reach.known_hosts.push_back(shorten_home(file));
  if (!route.program.empty()) reach.program = ssh_arguments(route, wishes, command_line);
  return reach;
}

MakeChildAgents child_agents_by_ssh() {
  return [](Loop& loop, ChildAgents::ParentLink parent) {
    const auto resolver = std::make_shared<Resolver>(loop);
    const auto ending = std::make_shared<EndingPrograms>();
    const auto make = [&loop, resolver, ending](const protocol::Reach& reach) {
      if (reach.program.empty())
        return make_ssh_carrier(loop, *resolver, route_of(reach), reach.command_line);
      return Result<std::unique_ptr<Carrier>>(make_program_carrier(
          loop, *resolver, ending,
          {.host = reach.name, .arguments = reach.program, .target = reach.target}));
    };
    return make_child_agents(loop, std::move(parent), make, ending);
  };
}

}  // namespace horo::launcher
