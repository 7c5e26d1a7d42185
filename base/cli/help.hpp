// SPDX-License-Identifier: Apache-2.0
// A command's help as text. Pure; what a person sees and what the manual is made of.
#pragma once

#include <string>
#include <vector>

#include "base/cli/command_tree.hpp"

namespace horo::cli {

/// "usage: horo run [OPTION...] COMMAND [ARG...]".
std::string usage_line(const Command& command);

/// Usage, summary, the commands of `listed` with a line each, and every flag by group, wrapped to
/// `width` columns. Ends with a newline.
std::string help_text(const Command& command, const std::vector<const Command*>& listed = {},
                      std::size_t width = 100);

/// "-n, --num-proc N, --np N": how a flag may be written.
std::string flag_spellings(const Flag& flag);

/// The flag's help with default and allowed values of its knob.
std::string flag_help(const Flag& flag);

}  // namespace horo::cli
