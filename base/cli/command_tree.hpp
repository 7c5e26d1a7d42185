// SPDX-License-Identifier: Apache-2.0
// Commands and their flags as a value: read by the tools, their help, the manual and completions.
// The flags of knobs follow from the knob table; only what is no knob is written here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/knobs/table.hpp"

namespace horo::cli {

struct Flag {
  std::string name{};               ///< Long, without dashes.
  std::vector<std::string> also{};  ///< Other long spellings.
  char letter = '\0';
  std::string value{};  ///< What it takes, as in help: "N", "FILE"; empty: a switch.
  std::string group{};
  std::string help{};
  bool negatable = false;         ///< Also --no-name, and --name=false.
  bool hidden = false;            ///< Valid, but not in help.
  const KnobRow* knob = nullptr;  ///< The row it sets; null: an option of the command itself.
  /// Known from horovodrun, but not to be had here: what to say instead.
  std::string refusal{};
};

struct Command {
  std::string name;     ///< "run"; empty: horo itself.
  std::string summary;  ///< One line.
  std::string tail;     ///< What follows the options: "COMMAND [ARG...]"; empty: nothing may.
  std::vector<Flag> flags;
};

/// All commands, in the order of the manual, horo itself first. Built at the first call.
/// Thread: any.
const std::vector<Command>& commands();

/// The command of this name; null: none.
const Command* find_command(std::string_view name);

}  // namespace horo::cli
