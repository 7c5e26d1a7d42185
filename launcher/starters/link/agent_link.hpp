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

/// Limits on the end of an agent.
struct EndLimits {
  Duration agent;  ///< For an agent that was told to end its ranks, beyond their graces.
  /// For the stream to end after the carrier: processes of the host that were left without guard
  /// and agent may hold it for a while.
  Duration stream = std::chrono::seconds(15);
};

/// Opens the launcher's conversation with one agent over `carrier`. An agent or a stream
/// that does not end within `limits` is given up. `relay`: the
/// connections to hosts that are reached through this one; they are lost right after it.
/// Fails: as Carrier::open.
Result<std::unique_ptr<Agent>> open_agent(Loop& loop, const AgentSpec& spec,
                                          std::unique_ptr<Carrier> carrier, EndLimits limits,
                                          AgentEvents& events,
                                          std::shared_ptr<AgentRelay> relay = {});

}  // namespace horo::launcher
