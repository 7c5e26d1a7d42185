// SPDX-License-Identifier: Apache-2.0
// horo runs horo-<command>, or lists the commands.
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "apps/common/tools.hpp"
#include "apps/common/usage_error.hpp"
#include "base/cli/arguments.hpp"
#include "base/cli/help.hpp"
#include "base/exit_code.hpp"
#include "base/knobs/nearest.hpp"
#include "base/version.hpp"

namespace horo::apps {

namespace {

int print_help() {
  std::vector<const cli::CommandRow*> installed;
  for (const auto& command : cli::commands()) {
    if (!command.name.empty() && find_tool(command.name)) installed.push_back(&command);
  }
  return write_out(cli::help_text(*cli::find_command(""), installed)) ? exit_code::kOk
                                                                      : exit_code::kFailure;
}

int refuse(std::string_view command, const Error& error) {
  if (error.code != Errc::not_found) return usage_error("horo", error);
  std::vector<std::string_view> known;
  for (const auto& other : cli::commands()) known.push_back(other.name);
  if (cli::find_command(command) != nullptr) {
    return usage_error("horo", {Errc::not_found, fmt::format("command '{}' is not installed: {}",
                                                             command, error.message)});
  }
  return usage_error("horo", {Errc::not_found, fmt::format("unknown command '{}'{}", command,
                                                           did_you_mean(command, known))});
}

int run(std::span<const char* const> arguments) {
  // A command is executed without reading anything first, so that it starts quickly.
  if (!arguments.empty() && arguments.front()[0] != '-') {
    const std::string_view command(arguments.front());
    if (command == "help" && arguments.size() > 1) {
      const std::vector<const char*> help{"--help"};
      return refuse(arguments[1], become_tool(arguments[1], help));
    }
    if (command == "help") return print_help();
    return refuse(command, become_tool(command, arguments.subspan(1)));
  }
  const auto parsed = cli::parse_arguments(*cli::find_command(""), arguments);
  if (!parsed) return usage_error("horo", parsed.error());
  if (parsed->find("help") != nullptr) return print_help();
  if (parsed->find("version") != nullptr) {
    return write_out(fmt::format("{}\n", version())) ? exit_code::kOk : exit_code::kFailure;
  }
  return usage_error("horo", {Errc::invalid_argument, "no command is given"});
}

}  // namespace

}  // namespace horo::apps

int main(int argc, char** argv) {
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  return horo::apps::run(arguments.subspan(arguments.empty() ? 0 : 1));
}
