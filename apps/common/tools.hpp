// SPDX-License-Identifier: Apache-2.0
// Horo's programs act as one tool: `horo run` starts the program horo-run in the folder of horo.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace horo::apps {

/// Directory of this program; empty if /proc is not mounted.
std::string own_directory();

/// Path of horo-<command>: in the directory of this program, else on PATH. Blocks: for the file
/// system. Fails: not_found.
Result<std::string> find_tool(std::string_view command);

/// Replaces this process by horo-<command> with these arguments. Returns only if that fails, with
/// the reason.
Error become_tool(std::string_view command, std::span<const char* const> arguments);

/// Writes all of `text` to standard output. False: it could not (a closed pipe, a full disk).
bool write_out(std::string_view text);

}  // namespace horo::apps
