// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "base/result.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// The guard gives these to its child.
struct AgentSurroundings {
  const ControlGroupInfo& control_group;
  int replacements;  ///< An eventfd that counts sweepers that were killed and replaced.
};

/// Splits this process into two that watch each other. The parent, the guard, only waits. The child
/// runs `agent` and exits with what `agent` returns. Both are child subreapers.
/// - If the child ends in any way, the guard kills all descendants that are left.
/// - If the guard ends, the child gets SIGTERM and kills its descendants.
/// - Where a control group can be made, the child and all that it starts are in it.
/// - A third process, the sweeper, ends what these two cannot: sweeper.hpp.
/// - Guard and sweeper show names and command lines without "horo", so that "pkill -9 horo" or
///   "pkill -9 -f horo" leaves them to clean up.
/// - Both ignore the signals that only ranks use. The guard passes SIGTERM, SIGINT and SIGHUP on to
///   the child as SIGTERM.
/// - When the launcher's side of `stream` has ended and the child does not end, the guard kills the
///   child, which may be stopped by a signal.
/// Returns, in the guard only, the exit code: the child's, or 128 plus the signal that ended it.
/// Call it before there are threads or a loop. Fails: unavailable (process limit), io.
Result<int> run_guarded(int stream, const std::function<int(const AgentSurroundings&)>& agent);

}  // namespace horo::launcher
