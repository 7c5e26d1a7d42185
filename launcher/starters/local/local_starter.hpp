// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"
#include "launcher/starters/link/agent_link.hpp"

namespace horo::launcher {

/// The program that is an agent: HORO_AGENT_PATH, or horo-agent beside this process's own binary.
/// Fails: io.
Result<std::string> agent_path();

/// Begins on this machine: horo-agent as a child, spoken to over a socket pair. An agent that has
/// been told to end its ranks and does not answer for `patience` is killed with all below it, and
/// lost.
std::unique_ptr<Starter> make_local_starter(Loop& loop, Duration patience = kAgentPatience);

}  // namespace horo::launcher
