// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"
#include "launcher/starters/link/agent_relay.hpp"
#include "launcher/starters/link/carrier.hpp"

namespace horo::launcher {

/// The time that an agent has to end its ranks beyond their own grace: it waits for the kernel
/// twice, and for the disk to which it writes their timelines.
inline constexpr Duration kAgentEndTimeout = std::chrono::seconds(25);

/// Opens the launcher's conversation with one agent over `carrier`. An agent that was told to end
/// its ranks and does not finish within `end_timeout` beyond their graces is given up. `relay`: the
/// connections to hosts that are reached through this one; they are lost right after it.
/// Fails: as Carrier::open.
Result<std::unique_ptr<Agent>> open_agent(Loop& loop, const AgentSpec& spec,
                                          std::unique_ptr<Carrier> carrier, Duration end_timeout,
                                          AgentEvents& events,
                                          std::shared_ptr<AgentRelay> relay = {});

}  // namespace horo::launcher
