// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"

namespace horo::apps {

/// The program that `command` starts, as execvp looks for it: a path with a slash as it is, a bare
/// name in `path` (the value of PATH; null: the system's default).
/// Fails: not_found (nowhere), permission_denied (there, but not executable); the message names it.
Result<std::string> find_program(const std::string& command, const char* path);

}  // namespace horo::apps
