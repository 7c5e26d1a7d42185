// SPDX-License-Identifier: Apache-2.0
// The members of a running elastic job as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "timeline/live/live_membership.hpp"

namespace horo::timeline {

/// "generation 3: 4 ranks (2 to 8), 1 of 1 spares ready", then a line for each host that is not
/// used.
std::vector<std::string> member_lines(const LiveMembership& members);

/// As an object.
void write(JsonWriter& json, const LiveMembership& members);

}  // namespace horo::timeline
