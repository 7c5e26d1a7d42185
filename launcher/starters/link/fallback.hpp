// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "launcher/starters/link/carrier.hpp"

namespace horo::launcher {

using CarrierFactory = std::function<Result<std::unique_ptr<Carrier>>()>;

/// Tries one way after the other until the agent's stream is there: a host that another host cannot
/// reach may be reachable from this one. When all fail, the error is that of the last one. `ways`
/// has at least one.
std::unique_ptr<Carrier> make_fallback_carrier(Loop& loop, std::vector<CarrierFactory> ways);

}  // namespace horo::launcher
