// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/dial_in_starter.hpp"

#include <utility>

#include "launcher/starters/dial_in/dial_in_agents.hpp"

namespace horo::launcher {

namespace {

class DialInStarter final : public Starter {
 public:
  DialInStarter(Loop& loop, DialInJob job, LaunchAgents launch)
      : name_(job.started_by),
        agents_(std::make_shared<DialInAgents>(loop, std::move(job),
                                               DialInAgents::Hooks{.launch = std::move(launch)})) {}

  std::string_view name() const override { return name_; }

  Status probe() const override { return {}; }

  Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) override {
    return agents_->add_host(spec, events);
  }

 private:
  const std::string name_;
  const std::shared_ptr<DialInAgents> agents_;
};

}  // namespace

std::unique_ptr<Starter> make_dial_in_starter(Loop& loop, DialInJob job, LaunchAgents launch) {
  return std::make_unique<DialInStarter>(loop, std::move(job), std::move(launch));
}

}  // namespace horo::launcher
