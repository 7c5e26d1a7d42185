// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/knobs/settings.hpp"
#include "base/result.hpp"
#include "base/worker_env.hpp"

namespace horo::apps {

/// Which variables are passed on, as the user lists them: "NAME,PREFIX*".
struct EnvironmentFilter {
  std::string allow = "*";
  std::string deny;
};

/// What every rank inherits of the launcher's own environment (`entries` as environ, "NAME=value"):
/// all that `filter` lets pass but what describes another rank, exported shell functions, OLDPWD
/// and what `common` sets.
Environment inherited_environment(const char* const* entries, const Environment& common,
                                  const EnvironmentFilter& filter = {});

/// By which interfaces and networks the ranks' libraries are to go, as far as the user has said.
/// Fails: invalid_argument.
Result<Environment> network_variables(const Settings& settings);

/// What a host's ranks take from its own agent, not from the launcher's environment.
std::vector<std::string> own_variables();

/// `environment` without what is true on this host only.
Environment for_another_host(const Environment& environment);

/// Name of the loopback interface; empty if there is none.
std::string loopback_interface();

}  // namespace horo::apps
