// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"
#include "launcher/starters/link/agent_link.hpp"

namespace horo::launcher {

/// The path of the agent program: HORO_AGENT_PATH, or horo-agent beside this process's own binary.
/// Fails: io.
Result<std::string> agent_path();

/// Starts agents on this machine: horo-agent as a child, connected by a socket pair. An agent that
/// was told to end its ranks and does not finish within `end_timeout` beyond their graces is killed
/// with all its descendants, and counts as lost.
std::unique_ptr<Starter> make_local_starter(Loop& loop, Duration end_timeout = kAgentEndTimeout);

}  // namespace horo::launcher
