// SPDX-License-Identifier: Apache-2.0
#include "launcher/run/mixed_starter.hpp"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "launcher/starters/link/login_limiter.hpp"
#include "launcher/starters/link/remote_agent.hpp"
#include "launcher/starters/local/local_starter.hpp"
#include "launcher/starters/program/program_carrier.hpp"
#include "launcher/starters/ssh/ssh_carrier.hpp"
#include "launcher/starters/tree/reach.hpp"
#include "launcher/starters/tree/tree_starter.hpp"

namespace horo::launcher {

namespace {

class MixedStarter final : public Starter {
 public:
  MixedStarter(Loop& loop, const Placement& placement, StartPlan plan, Duration connect_timeout)
      : loop_(loop),
        local_(make_local_starter(loop)),
        resolver_(loop),
        plan_(std::move(plan)),
        name_(names_of(plan_)) {
    std::vector<std::string> names;
    for (const auto& host : placement.hosts) {
      numbers_.emplace(host.name, names.size());
      names.push_back(host.name);
    }
    tree_ = std::make_unique<TreeStarter>(
        loop_, plan_.tree, names,
        TreeWays{.from_here = [this, names](std::size_t host) { return reach(host, names[host]); },
                 .from_there =
                     [this](std::size_t host) {
                       return reach_by_ssh(plan_.hosts[host].route, plan_.ssh, command_line_);
                     },
                 .connect_timeout = connect_timeout});
  }

  std::string_view name() const override { return name_; }

  Status probe() const override { return plan_.uses_this_machine() ? local_->probe() : Status(); }

  Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) override {
    const auto host = numbers_.at(spec.host);
    if (plan_.hosts[host].method == StartMethod::local) return local_->start(spec, events);
    HORO_TRY(agent_, agent_path());
    command_line_ = remote_command_line(agent_);
    return tree_->start(host, spec, events);
  }

 private:
  Result<std::unique_ptr<Carrier>> reach(std::size_t host, const std::string& name) {
    const auto& start = plan_.hosts[host];
    if (start.method == StartMethod::batch) {
      HORO_TRY(auto program, program_start(start.batch, name, agent_));
      return make_program_carrier(loop_, resolver_, ending_, std::move(program));
    }
    const auto& route = start.route;
    std::unique_ptr<Carrier> carrier;
    if (start.method == StartMethod::ssh) {
      HORO_TRY(carrier, make_ssh_carrier(loop_, resolver_, route, command_line_));
    } else {
      carrier = make_program_carrier(loop_, resolver_, ending_,
                                     {.host = name,
                                      .arguments = ssh_arguments(route, plan_.ssh, command_line_),
                                      .target = route.name});
    }
    const auto server =
        route.jump_host.empty() ? fmt::format("{}:{}", route.name, route.port) : route.jump_host;
    return make_limited_carrier(loop_, login_limiter_, server, std::move(carrier));
  }

  Loop& loop_;
  const std::unique_ptr<Starter> local_;
  Resolver resolver_;
  const std::shared_ptr<EndingPrograms> ending_ = std::make_shared<EndingPrograms>();
  LoginLimiter login_limiter_;
  const StartPlan plan_;
  const std::string name_;
  std::string agent_;         ///< Path of the agent program, expected to be the same on all hosts.
  std::string command_line_;  ///< Starts the agent in a login shell.
  std::unordered_map<std::string, std::size_t> numbers_;  ///< By host name.
  std::unique_ptr<TreeStarter> tree_;
};

}  // namespace

std::unique_ptr<Starter> make_mixed_starter(Loop& loop, const Placement& placement,
                                            const StartPlan& plan, Duration connect_timeout) {
  return std::make_unique<MixedStarter>(loop, placement, plan, connect_timeout);
}

}  // namespace horo::launcher
