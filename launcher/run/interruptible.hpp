// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

namespace horo::launcher {

/// For programs: calls `work` and keeps signals from ending this process meanwhile, because
/// programs that `work` runs would be left behind. SIGINT, SIGTERM and SIGHUP, and SIGUSR1 and
/// SIGUSR2 as well, make the descriptor that `work` gets readable; the first of them is returned
/// when `work` has returned. It ends this process if `work` does not return soon. Where the system
/// has no descriptors or threads left, signals act as without this function, and `work` gets -1.
/// Blocks: until `work` has returned.
std::optional<int> run_interruptibly(const std::function<void(int cancel)>& work);

}  // namespace horo::launcher
