// SPDX-License-Identifier: Apache-2.0
// Writes the help of a command as text. Pure. The manual uses the same text.
#pragma once

#include <string>
#include <vector>

#include "base/cli/command_tree.hpp"

namespace horo::cli {

/// "usage: horo run [OPTION...] COMMAND [ARG...]".
std::string usage_line(const CommandRow& command);

/// Usage, summary, one line for each command in `listed`, and every flag by group, wrapped to
/// `width` columns. Ends with a newline.
std::string help_text(const CommandRow& command, const std::vector<const CommandRow*>& listed = {},
                      std::size_t width = 100);

/// The spellings of a flag: "-n, --num-proc N, --np N".
std::string flag_spellings(const Flag& flag);

/// The help of a flag, with the default and the allowed values of its knob.
std::string flag_help(const Flag& flag);

}  // namespace horo::cli
