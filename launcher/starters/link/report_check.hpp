// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/protocol/protocol.hpp"
#include "launcher/starters/link/agent_task.hpp"

namespace horo::launcher {

/// Whether a message of an agent fits its task: it speaks of its own ranks only, and a remote agent
/// answers Prepare with as many different ports as it was asked for. The agent's host may run
/// another program, or have broken memory. Pure. Fails: protocol; the message says what the agent
/// did ("it ...").
Status check_report(const AgentTask& task, const protocol::Message& message);

/// Whether a message of an agent belongs to no task. It counts even when the agent has no ranks.
/// Pure.
bool is_of_agent(const protocol::Message& message);

}  // namespace horo::launcher
