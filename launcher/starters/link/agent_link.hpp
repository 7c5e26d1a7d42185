// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/loop/loop.hpp"
#include "launcher/starter.hpp"
#include "launcher/starters/link/carrier.hpp"
#include "launcher/starters/link/relay.hpp"

namespace horo::launcher {

/// How long an agent may take to end its ranks beyond their own grace: it waits for the kernel
/// twice, and for the disk that takes their timelines.
inline constexpr Duration kAgentPatience = std::chrono::seconds(25);

/// The launcher's end of one agent, whatever carries its bytes. An agent that has been told to end
/// its ranks and does not answer for `patience` is given up. `relay`: for hosts that are reached
/// through this one; they are lost right after it.
/// Fails: as Carrier::open.
Result<std::unique_ptr<Agent>> open_agent(Loop& loop, const AgentSpec& spec,
                                          std::unique_ptr<Carrier> carrier, Duration patience,
                                          AgentEvents& events, std::shared_ptr<Relay> relay = {});

}  // namespace horo::launcher
