// SPDX-License-Identifier: Apache-2.0
// Makes the orders for an agent that connected to the launcher by itself, for its one rank. Pure.
#pragma once

#include "launcher/starter.hpp"
#include "launcher/starters/dial_in/dial_in_starter.hpp"

namespace horo::launcher {

/// The part of its host's spec that is for `rank`. Its agent waits for no further assignment.
AgentSpec make_dialled_spec(AgentSpec host_spec, Rank rank, const DialInJob& job);

}  // namespace horo::launcher
