// SPDX-License-Identifier: Apache-2.0
// The commands and their flags as a value, which the tools, their help, the manual and the
// completions read. The flags of knobs come from the knob table; only the other flags are written
// here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/knobs/knob_table.hpp"

namespace horo::cli {

struct Flag {
  std::string name{};               ///< The long name, without dashes.
  std::vector<std::string> also{};  ///< Other long spellings.
  char letter = '\0';
  std::string value{};  ///< The value's name in the help: "N", "FILE"; empty for a switch.
  std::string group{};
  std::string help{};
  bool negatable = false;  ///< --no-name and --name=false are accepted too.
  bool hidden = false;     ///< Valid, but not shown in the help.
  /// The knob that it sets; null for an option of the command itself.
  const KnobRow* knob = nullptr;
  /// Two numbers as separate words are one value, as horovodrun takes it: `--range 10 100`.
  bool joins_numbers = false;
};

struct CommandRow {
  std::string name;     ///< "run"; empty: horo itself.
  std::string summary;  ///< One line.
  /// The arguments behind the options: "COMMAND [ARG...]"; empty if there are none.
  std::string tail;
  std::vector<Flag> flags;
};

/// All commands in the order of the manual, beginning with horo itself. Built at the first call.
/// Thread: any.
const std::vector<CommandRow>& commands();

/// The command of this name, or null.
const CommandRow* find_command(std::string_view name);

}  // namespace horo::cli
