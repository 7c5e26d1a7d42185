// SPDX-License-Identifier: Apache-2.0
// Parses argv. Options end at the first word that is not an option, or at `--`, which is dropped;
// everything after that is passed on unchanged. A long option may be shortened while it stays
// unambiguous. Words like -np and -hostfile are accepted with a single dash. A value is the next
// word or follows '='.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/command_tree.hpp"
#include "base/result.hpp"

namespace horo::cli {

struct Option {
  const Flag* flag = nullptr;
  std::string name;   ///< The full name of the option, without dashes: "no-autotune".
  std::string value;  ///< "true" for a switch without '='.
};

struct Arguments {
  std::vector<Option> options;    ///< In the order given.
  std::vector<std::string> rest;  ///< The first positional argument and everything after it.

  /// The last option with this flag; null if it was not given.
  const Option* find(std::string_view flag) const;
};

/// Pure. Fails: invalid_argument, for unknown and ambiguous options, missing values, and positional
/// arguments of a `command` that takes none.
Result<Arguments> parse_arguments(const CommandRow& command, std::span<const char* const> words);

}  // namespace horo::cli
