// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// How long an agent may take to end its ranks beyond their own grace: it waits for the kernel
/// twice.
inline constexpr Duration kAgentPatience = std::chrono::seconds(15);

/// Begins on this machine: horo-agent as a child, spoken to over a socket pair. The program is
/// HORO_AGENT_PATH, or horo-agent beside this process's own binary. An agent that has been told to
/// end its ranks and does not answer for `patience` is killed with all below it, and lost.
std::unique_ptr<Starter> make_local_starter(Loop& loop, Duration patience = kAgentPatience);

}  // namespace horo::launcher
