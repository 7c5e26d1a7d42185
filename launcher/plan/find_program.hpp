// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace horo::launcher {

/// Path of the program that `command` starts, found as execvp finds it. A command with a slash is
/// taken as it is; a bare name is looked for in `path` (the value of PATH; null: the system's
/// default).
/// Fails: not_found; permission_denied (the file exists but is not executable). The message names
/// the command.
Result<std::string> find_program(const std::string& command, const char* path);

}  // namespace horo::launcher
