// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/process/command.hpp"

namespace horo::launcher {

/// Why `command` could not be executed, in words: `error` is execve's over all `candidates`, the
/// paths that its first word may mean, as seen from its directory. not_found if none of them is
/// there, permission_denied if one is but cannot be executed. Blocks: looks at the files.
Failure execute_failure(int error, const Command& command,
                        const std::vector<std::string>& candidates);

}  // namespace horo::launcher
