// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop/loop.hpp"
#include "launcher/job/host_link.hpp"

namespace horo::launcher {

/// The agents of a job: those of the current generation's hosts, those that wait between two
/// generations, and those that have been told to leave. Thread: the loop's.
class JobAgents {
 public:
  using SameAs = std::vector<std::optional<std::size_t>>;

  /// `loop` outlives this. The hooks are called with the host's number in its generation.
  JobAgents(Loop& loop, HostLink::Hooks hooks) : loop_(loop), hooks_(std::move(hooks)) {}

  /// Begins a generation of so many hosts. Agents that wait are used as `same_as` says
  /// (GenerationSpec); the others leave. `starter` starts new ones.
  void begin(std::size_t hosts, const SameAs& same_as, const std::shared_ptr<Starter>& starter);

  /// As HostLink::start.
  void start(std::size_t host, const AgentSpec& spec, AgentEvents& news) {
    hosts_[host]->start(host, spec, news);
  }

  /// The generation is over: keeps the agents that wait.
  void end();

  /// Tells all agents that wait to leave.
  void release();

  /// Destroys all agents.
  void clear();

  std::size_t size() const { return hosts_.size(); }

  /// Null: the host has none.
  Agent* of_host(std::size_t host) const {
    return host < hosts_.size() ? hosts_[host]->agent() : nullptr;
  }

  /// Null: there is no such host in the current generation.
  HostLink* link(std::size_t host) const {
    return host < hosts_.size() ? hosts_[host].get() : nullptr;
  }

  /// Those of the current generation, and those that wait.
  void for_each(const std::function<void(Agent&)>& task);

  /// The hosts whose agents are not ready.
  std::vector<std::size_t> late_hosts() const;

  /// "host a: connecting to 10.0.0.3:22; host b: ...": the first few of them.
  std::string list_steps() const;

  /// Whether an agent is left of any generation.
  bool any_left() const;

  /// Agents of the current generation that had another assignment before.
  std::size_t reused() const;

 private:
  using Links = std::vector<std::unique_ptr<HostLink>>;

  Loop& loop_;
  const HostLink::Hooks hooks_;
  Links hosts_;    ///< By host.
  Links kept_;     ///< Between two generations, by host of the last one; null: it is gone.
  Links leaving_;  ///< They were told to leave.
};

}  // namespace horo::launcher
