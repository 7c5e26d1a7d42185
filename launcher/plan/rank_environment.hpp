// SPDX-License-Identifier: Apache-2.0
// The environment variables of a rank: which of the launcher's own it inherits, and which a user's
// settings add.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/knobs/settings.hpp"
#include "base/result.hpp"
#include "base/worker_env.hpp"
#include "discovery/source.hpp"

namespace horo::launcher {

/// Which variables are passed on, in the form that users write: "NAME,PREFIX*".
struct EnvironmentFilter {
  std::string allow = "*";
  std::string deny;

  bool passes(std::string_view name) const;
};

/// Value of `name` in `entries` (an array like environ); null: it is not set.
const char* find_variable(const char* const* entries, std::string_view name);

/// The same, with an empty text for a variable that is not set.
std::string_view variable_or_empty(const char* const* entries, std::string_view name);

/// The variables that every rank inherits from the launcher's own environment (`entries`, an array
/// like environ). They are those that `filter` allows, without those that describe another rank
/// or the launcher's own task and node of Slurm, exported shell functions, OLDPWD, and the names
/// that `common` sets.
Environment inherited_environment(const char* const* entries, const Environment& common,
                                  const EnvironmentFilter& filter = {});

/// Variables that tell the ranks' libraries which network interfaces to use, from --tcp and
/// --network-interfaces. Fails: invalid_argument.
Result<Environment> network_variables(const Settings& settings);

/// The names in --network-interfaces, each once, in their order. Fails: invalid_argument (one is
/// empty).
Result<std::vector<std::string>> network_interfaces(const Settings& settings);

/// Names of variables whose value differs from host to host (HOME, TMPDIR, ...). Ranks on another
/// host take them from their own agent.
std::vector<std::string> host_variables();

/// Slurm's variables about the node `host` of the job that this process runs in: its name and its
/// number. `is_here`: it is this machine, whatever the user calls it. Empty without a job of Slurm.
Environment slurm_node_variables(const discovery::Lookup& lookup, const std::string& host,
                                 bool is_here);

/// `environment` without the variables that are true on this host only.
Environment for_another_host(const Environment& environment);

/// Name of the loopback interface; empty if there is none.
std::string loopback_interface();

}  // namespace horo::launcher
