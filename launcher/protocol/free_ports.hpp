// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"

namespace horo::launcher {

/// Finds `count` different TCP ports of this machine on which no process listens now, for the
/// frameworks of the ranks. They lie below the range from which the kernel chooses ports, and the
/// search begins at a random one, so that neither the kernel nor another launcher is likely to use
/// them meanwhile.
/// Fails: unavailable.
Result<std::vector<int>> free_ports(int count);

}  // namespace horo::launcher
