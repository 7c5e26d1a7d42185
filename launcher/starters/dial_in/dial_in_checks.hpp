// SPDX-License-Identifier: Apache-2.0
// Whether a host's spec and a rank's claim fit a job whose ranks another system starts. Pure.
#pragma once

#include <string>

#include "launcher/starter.hpp"
#include "launcher/starters/dial_in/dial_in_starter.hpp"
#include "launcher/starters/dial_in/rank_claim.hpp"

namespace horo::launcher {

/// The other system starts a fixed number of ranks. Fails: unsupported (an elastic spec).
Status check_is_fixed(const AgentSpec& spec, const DialInJob& job);

/// Says how the place that an agent claims differs from the plan's; empty: it does not.
std::string find_mismatch(const RankClaim& claim, const DialInJob& job);

}  // namespace horo::launcher
