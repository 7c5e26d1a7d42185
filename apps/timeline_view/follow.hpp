// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/running_job/watch_options.hpp"
#include "base/result.hpp"

namespace horo::apps {

/// Shows the figures of each interval of a trace that is being written, until no process has it
/// open any more. Returns the exit code. Fails: not_found, permission_denied, io, protocol,
/// unsupported.
Result<int> follow_file(const WatchOptions& options);

}  // namespace horo::apps
