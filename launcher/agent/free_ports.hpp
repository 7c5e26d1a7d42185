// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"

namespace horo::launcher {

/// `count` different TCP ports of this machine that nobody listens on now, for the frameworks of
/// the ranks. They lie below the range from which the kernel hands out ports by itself, and begin
/// at a random one, so that neither it nor another launcher is likely to take them meanwhile.
/// Fails: unavailable.
Result<std::vector<int>> free_ports(int count);

}  // namespace horo::launcher
