// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/process/command.hpp"

namespace horo::launcher {

/// The error message for a `command` that could not be executed. `error` is execve's errno for all
/// `candidates`: the paths that the first word may mean, as seen from the command's directory.
/// not_found if none of them exists, permission_denied if one exists but cannot be executed.
/// Blocks: looks at the files.
Failure execute_failure(int error, const Command& command,
                        const std::vector<std::string>& candidates);

}  // namespace horo::launcher
