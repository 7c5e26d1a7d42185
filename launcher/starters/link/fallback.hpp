// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "launcher/starters/link/carrier.hpp"

namespace horo::launcher {

using CarrierFactory = std::function<Result<std::unique_ptr<Carrier>>()>;

/// Tries one way after the other until the agent's stream is there: a host that another cannot
/// reach may be in our own reach. Why the last one failed is why all did. `ways` has one at least.
std::unique_ptr<Carrier> make_fallback_carrier(Loop& loop, std::vector<CarrierFactory> ways);

}  // namespace horo::launcher
