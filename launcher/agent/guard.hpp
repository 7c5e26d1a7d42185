// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "base/result.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// Splits this process in two that watch each other: the parent, the guard, only waits; the child
/// runs `agent` and exits with what it returns. Both are child subreapers. If the child ends in any
/// way the guard kills all that is left of its family. If the guard ends the child gets SIGTERM and
/// does the same. Where a control group can be made the child lives in it, and so does all that it
/// starts; see enclosure.hpp. Signals that only ranks use are ignored by both. The guard passes
/// SIGTERM, SIGINT and SIGHUP on to the child as SIGTERM, and kills it when it does not end after
/// the other side of `stream`, the launcher's, has: it may be stopped. Returns, in the guard only,
/// the exit code: the child's, 128 and the signal if one ended it. Call it before there are threads
/// or a loop. Fails: unavailable (process limit), io.
Result<int> run_guarded(int stream, const std::function<int(const Cover&)>& agent);

}  // namespace horo::launcher
