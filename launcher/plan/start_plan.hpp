// SPDX-License-Identifier: Apache-2.0
// How the agent of each host is started. It is decided before anything starts, so that --dry-run
// can show it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/plan/batch_system.hpp"
#include "launcher/starters/ssh/ssh_route.hpp"
#include "launcher/starters/tree/tree_plan.hpp"

namespace horo::launcher {

/// `ssh` uses the ssh library, `ssh_program` the program ssh.
enum class StartMethod : std::uint8_t { local, ssh, ssh_program, batch };

struct HostStart {
  StartMethod method = StartMethod::local;
  SshRoute route;      ///< For ssh and ssh_program.
  BatchStart batch{};  ///< For batch.
  std::string why{};   ///< Why this method was chosen; empty: there is nothing to explain.

  friend bool operator==(const HostStart&, const HostStart&) = default;
};

/// How the agents of all hosts are started.
struct StartPlan {
  std::vector<HostStart> hosts;  ///< By host of the placement.
  SshWishes ssh;
  TreePlan tree;  ///< Which host's agent starts which other agents.

  bool has(StartMethod method) const;

  /// Whether any host is another than this machine.
  bool uses_other_hosts() const;

  /// Whether any host is this machine.
  bool uses_this_machine() const { return has(StartMethod::local); }
};

/// "ssh", "local, srun": the methods that occur.
std::string names_of(const StartPlan& plan);

/// "by ssh as root to h1 (10.0.0.1), port 22", for people.
std::string describe(const HostStart& start);

/// "agents in 2 levels, at most 32 started from any host"; empty: no agent starts another.
std::string describe_tree(const StartPlan& plan);

}  // namespace horo::launcher
