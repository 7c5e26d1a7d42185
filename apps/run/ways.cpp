// SPDX-License-Identifier: Apache-2.0
#include "apps/run/ways.hpp"

#include <algorithm>
#include <cstdlib>
#include <pwd.h>
#include <unistd.h>
#include <unordered_map>
#include <utility>

#include "base/knobs/launcher_knobs.hpp"
#include "discovery/this_machine.hpp"
#include "launcher/starters/link/login_gate.hpp"
#include "launcher/starters/link/remote_agent.hpp"
#include "launcher/starters/local/local_starter.hpp"
#include "launcher/starters/program/program_carrier.hpp"
#include "launcher/starters/ssh/ssh_carrier.hpp"
#include "launcher/starters/tree/reach.hpp"
#include "launcher/starters/tree/tree_starter.hpp"

namespace horo::apps {

using namespace launcher;  // NOLINT(google-build-using-namespace): these are the launcher's ways

namespace {

constexpr Duration kConfigurationTime = std::chrono::minutes(1);

using Lookup = std::function<const char*(const char*)>;

/// Nobody logs in to this machine.
Status check_user(const PlacedHost& host) {
  if (host.user.empty()) return {};
  const auto* entry = getpwuid(geteuid());
  const std::string own = entry == nullptr ? "" : entry->pw_name;
  if (host.user == own) return {};
  return fail(Errc::invalid_argument,
              "host '{}' is this machine, where ranks run as '{}'; leave '{}@' out", host.name, own,
              host.user);
}

class WaysStarter final : public Starter {
 public:
  WaysStarter(Loop& loop, const Placement& placement, Ways ways, Duration patience)
      : loop_(loop), local_(make_local_starter(loop)), resolver_(loop), ways_(std::move(ways)) {
    std::vector<std::string> names;
    for (const auto& host : placement.hosts) {
      numbers_.emplace(host.name, names.size());
      names.push_back(host.name);
    }
    tree_ = std::make_unique<TreeStarter>(
        loop_, ways_.tree, names,
        TreeWays{.from_here = [this, names](std::size_t host) { return reach(host, names[host]); },
                 .from_there =
                     [this](std::size_t host) {
                       return reach_by_ssh(ways_.hosts[host].route, ways_.ssh, command_line_);
                     },
                 .patience = patience});
  }

  std::string_view name() const override {
    if (described_.empty()) described_ = names_of(ways_);
    return described_;
  }

  Status probe() const override { return ways_.stay_here() ? local_->probe() : Status(); }

  Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) override {
    const auto host = numbers_.at(spec.host);
    if (ways_.hosts[host].way == Way::local) return local_->start(spec, events);
    HORO_TRY(agent_, agent_path());
    command_line_ = remote_command_line(agent_);
    return tree_->start(host, spec, events);
  }

 private:
  Result<std::unique_ptr<Carrier>> reach(std::size_t host, const std::string& name) {
    const auto& way = ways_.hosts[host];
    if (way.way == Way::batch) {
      HORO_TRY(auto program, program_way(way.batch, name, agent_));
      return make_program_carrier(loop_, resolver_, std::move(program));
    }
    const auto& route = way.route;
    std::unique_ptr<Carrier> carrier;
    if (way.way == Way::ssh) {
      HORO_TRY(carrier, make_ssh_carrier(loop_, resolver_, route, command_line_));
    } else {
      carrier = make_program_carrier(loop_, resolver_,
                                     {.host = name,
                                      .arguments = ssh_arguments(route, ways_.ssh, command_line_),
                                      .target = route.name});
    }
    const auto door =
        route.door.empty() ? fmt::format("{}:{}", route.name, route.port) : route.door;
    return make_gated_carrier(loop_, gate_, door, std::move(carrier));
  }

  Loop& loop_;
  std::unique_ptr<Starter> local_;
  Resolver resolver_;
  LoginGate gate_;
  const Ways ways_;
  std::string agent_;         ///< Where it is looked for.
  std::string command_line_;  ///< That starts it behind a login.
  std::unordered_map<std::string, std::size_t> numbers_;
  std::unique_ptr<TreeStarter> tree_;
  mutable std::string described_;
};

}  // namespace

bool Ways::leave_this_machine() const {
  return std::any_of(hosts.begin(), hosts.end(),
                     [](const HostWay& way) { return way.way != Way::local; });
}

bool Ways::stay_here() const {
  return std::any_of(hosts.begin(), hosts.end(),
                     [](const HostWay& way) { return way.way == Way::local; });
}

Result<Ways> choose_ways(const Placement& placement, const Settings& settings,
                         const Lookup& lookup) {
  Ways ways{.hosts = std::vector<HostWay>(placement.hosts.size()),
            .ssh = {.port = settings.get(knobs::kSshPort),
                    .identity_file = settings.get(knobs::kSshIdentityFile),
                    .program = settings.get(knobs::kSshProgram)}};
  std::optional<BatchWays> batch;
  std::vector<std::string> others;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < placement.hosts.size(); ++i) {
    const auto& host = placement.hosts[i];
    if (discovery::is_this_machine(host.name)) {
      HORO_TRY_STATUS(check_user(host));
      continue;
    }
    if (!batch) {
      HORO_TRY(batch, BatchWays::find(settings, lookup));
    }
    HORO_TRY(auto way, batch->to(host.name));
    if (way) {
      auto why = way->why;
      ways.hosts[i] = {
          .way = Way::batch, .route = {}, .batch = std::move(*way), .why = std::move(why)};
    } else {
      others.push_back(host.user.empty() ? host.name : fmt::format("{}@{}", host.user, host.name));
      places.push_back(i);
    }
  }
  ways.tree.parents.resize(ways.hosts.size());
  if (others.empty()) return ways;
  const auto deadline = Deadline::in(SteadyClock::instance(), kConfigurationTime);
  HORO_TRY(auto routes, find_ssh_routes(others, ways.ssh, deadline));
  for (std::size_t i = 0; i < others.size(); ++i) {
    auto& route = routes[i];
    ways.hosts[places[i]] = {.way = route.program.empty() ? Way::ssh : Way::ssh_program,
                             .route = route,
                             .why = route.reason.empty() ? batch->why_not() : route.reason};
  }
  std::vector<bool> takes_part(ways.hosts.size());
  for (const auto place : places) takes_part[place] = true;
  ways.tree = plan_tree(takes_part, static_cast<std::size_t>(settings.get(knobs::kFanout)));
  return ways;
}

std::string names_of(const Ways& ways) {
  const auto has = [&](Way wanted) {
    return std::any_of(ways.hosts.begin(), ways.hosts.end(),
                       [wanted](const HostWay& way) { return way.way == wanted; });
  };
  std::string text;
  const auto add = [&text](std::string_view name) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  };
  if (ways.stay_here()) add("local");
  if (has(Way::ssh) || has(Way::ssh_program)) add("ssh");
  std::vector<BatchProgram> named;
  for (const auto& host : ways.hosts) {
    const auto program = host.batch.program;
    if (host.way != Way::batch || std::find(named.begin(), named.end(), program) != named.end())
      continue;
    named.push_back(program);
    add(name(program));
  }
  return text;
}

std::string describe_tree(const Ways& ways) {
  if (ways.tree.levels < 2) return {};
  std::vector<std::size_t> children(ways.hosts.size());
  for (const auto& parent : ways.tree.parents) {
    if (parent) ++children[*parent];
  }
  return fmt::format("agents in {} levels, at most {} started from any host", ways.tree.levels,
                     *std::max_element(children.begin(), children.end()));
}

std::string describe(const HostWay& host_way) {
  const auto why = host_way.why.empty() ? "" : fmt::format(" ({})", host_way.why);
  const auto& route = host_way.route;
  switch (host_way.way) {
    case Way::local:
      return "here";
    case Way::batch:
      return host_way.batch.program == BatchProgram::rsh
                 ? fmt::format("by {}{}", fmt::join(host_way.batch.before, " "), why)
                 : fmt::format("by {}{}", name(host_way.batch.program), why);
    case Way::ssh_program:
      return fmt::format("by the program {}{}", route.program, why);
    case Way::ssh:
      break;
  }
  return fmt::format("by ssh as {} to {}, port {}{}", route.user, route.name, route.port, why);
}

std::unique_ptr<Starter> make_ways_starter(Loop& loop, const Placement& placement, const Ways& ways,
                                           Duration patience) {
  return std::make_unique<WaysStarter>(loop, placement, ways, patience);
}

}  // namespace horo::apps
