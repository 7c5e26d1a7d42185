// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/script.hpp"

#include <unistd.h>
#include <utility>

#include "base/cli/split_words.hpp"
#include "discovery/program.hpp"
#include "discovery/sources/hostfile.hpp"

namespace horo::discovery {

namespace {

/// Signs with a meaning for the shell, besides quotes and blanks.
constexpr std::string_view kShellSigns = "|&;<>()$`*?[]{}#~!=\n";

/// A file with blanks in its name needs no quotes. Plain words are executed without a shell, so
/// that an error names the program that is missing.
Result<std::vector<std::string>> command_of(const std::string& text) {
  if (access(text.c_str(), F_OK) == 0) return std::vector<std::string>{text};
  if (text.find_first_of(kShellSigns) != std::string::npos)
    return std::vector<std::string>{"/bin/sh", "-c", text};
  HORO_TRY(auto words, split_words(text));
  if (words.empty()) return std::vector<std::string>{text};
  return words;
}

}  // namespace

ScriptSource::ScriptSource(std::string path, int default_slots, NoHosts no_hosts)
    : path_(std::move(path)),
      name_(fmt::format("discovery script '{}'", path_)),
      default_slots_(default_slots),
      no_hosts_(no_hosts) {}

Result<Listing> ScriptSource::list(WaitLimit limit) {
  HORO_TRY(const auto command, command_of(path_).context(name_));
  auto text = output_of(command, limit);
  if (!text) return Failure(std::move(text).error().context(name_));
  auto hosts = parse_hostfile(*text, default_slots_, no_hosts_);
  if (!hosts)
    return Failure(std::move(hosts).error().context(fmt::format("what {} prints", name_)));
  return Listing{.hosts = std::move(*hosts), .from = {}};
}

}  // namespace horo::discovery
