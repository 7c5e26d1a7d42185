// SPDX-License-Identifier: Apache-2.0
// The options that `horo top` and `horo timeline-view` share, and how both read their words.
#pragma once

#include <charconv>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/arguments.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace horo::apps {

struct WatchOptions {
  std::string_view program;  ///< The component that log lines name: "top".
  std::string target;        ///< The beginning of a job's id, or a file.
  Duration interval{};
  std::vector<std::string> hosts;  ///< Further hosts of the job, looked at through ssh.
  bool json = false;
  bool once = false;  ///< Show one view and end.
};

/// Reads --interval, --hosts, --json and --once; the caller fills in the rest.
/// Fails: invalid_argument.
Result<WatchOptions> read_watch_options(const cli::Arguments& arguments);

/// Splits "h1,h2". Fails: invalid_argument (no host, or a word that ssh would take for an option).
Result<std::vector<std::string>> split_hosts(std::string_view text);

/// Parses all words, with options and other words in any order. `rest` holds the other words.
/// Fails: invalid_argument.
Result<cli::Arguments> parse_in_any_order(const cli::CommandRow& command,
                                          std::span<const char* const> words);

/// Reads the number that follows `flag`; leaves `to` alone where the flag is not given.
/// Fails: invalid_argument.
template <typename T>
Status read_number(const cli::Arguments& arguments, std::string_view flag, T least, T most, T& to) {
  const auto* option = arguments.find(flag);
  if (option == nullptr) return {};
  const auto& text = option->value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error == std::errc{} && end == text.data() + text.size() && to >= least && to <= most)
    return {};
  return fail(Errc::invalid_argument, "option '--{}': '{}' must be a number from {} to {}", flag,
              text, least, most);
}

/// Raises the limit of open files: a viewer opens a file or memory for each rank.
void allow_many_files();

}  // namespace horo::apps
