// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <sys/resource.h>
#include <vector>

#include "base/worker_env.hpp"

namespace horo::launcher {

/// Properties of the agent's process that its ranks inherit.
struct Inheritance {
  rlimit descriptor_limit{};     ///< The limit before it was raised for the agent.
  std::vector<int> descriptors;  ///< Descriptors that the ranks have under the same numbers.
  Environment environment;       ///< Variables that everything from the launcher overrides.
  /// Children of the agent that neither are ranks nor were left by one; empty: there are none.
  std::function<std::vector<int>()> others;
};

}  // namespace horo::launcher
