// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/worker_env.hpp"

namespace horo::apps {

/// What every rank inherits of the launcher's own environment (`entries` as environ, "NAME=value"):
/// all but what describes another rank, exported shell functions, OLDPWD and what `common` sets.
Environment inherited_environment(const char* const* entries, const Environment& common);

/// Name of the loopback interface; empty if there is none.
std::string loopback_interface();

}  // namespace horo::apps
