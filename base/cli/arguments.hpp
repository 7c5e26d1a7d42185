// SPDX-License-Identifier: Apache-2.0
// argv as its owner meant it: options end at the first word that is none (or at a `--`, which is
// dropped), and everything from there on is passed on verbatim. Long options may be shortened as
// long as they stay unambiguous; -np, -hostfile and other single-dash words are known; values
// follow as the next word or after '='.
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
  std::string name;   ///< The spelling that was meant, in full and without dashes: "no-autotune".
  std::string value;  ///< Of a switch: "true", or what followed its '='.
};

struct Arguments {
  std::vector<Option> options;    ///< In their order.
  std::vector<std::string> rest;  ///< The first positional and all that follows.

  /// The last option of this flag; null: not given.
  const Option* find(std::string_view flag) const;
};

/// Pure. Fails: invalid_argument, for unknown, ambiguous and refused options, missing values, and
/// positionals where `command` takes none.
Result<Arguments> parse_arguments(const Command& command, std::span<const char* const> words);

}  // namespace horo::cli
