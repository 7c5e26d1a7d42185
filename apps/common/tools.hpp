// SPDX-License-Identifier: Apache-2.0
// The programs of horo as one tool: `horo run` is the program horo-run beside horo.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace horo::apps {

/// Directory of this program; empty where /proc is not mounted.
std::string own_directory();

/// Path of horo-<command>: in the directory of this program, else on PATH. Blocks: for the file
/// system. Fails: not_found.
Result<std::string> find_tool(std::string_view command);

/// Becomes horo-<command> with these arguments; returns only with the reason why it could not.
Error become_tool(std::string_view command, std::span<const char* const> arguments);

/// Writes all of `text` to standard output; false if it could not (a closed pipe, a full disk).
bool write_out(std::string_view text);

}  // namespace horo::apps
