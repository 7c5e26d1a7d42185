// SPDX-License-Identifier: Apache-2.0
// The launcher's answers to the calls of workers, as their agents get them. Pure functions.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/elastic/membership_messages.hpp"
#include "launcher/elastic/membership_orders.hpp"

namespace horo::launcher {

/// The answers to all members of a generation, by the host whose agent gets them.
std::map<std::size_t, std::vector<elastic::CallAnswer>> answers_of(
    const FormedGeneration& generation);

/// The answer to a call that leads into no generation.
elastic::CallAnswer answer_of(const TurnedAway& worker, elastic::MembershipKind kind);

}  // namespace horo::launcher
