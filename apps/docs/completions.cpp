// SPDX-License-Identifier: Apache-2.0
#include "apps/docs/completions.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "apps/common/shell.hpp"
#include "base/cli/command_tree.hpp"

namespace horo::apps {

namespace {

/// The kind of value that a flag takes.
enum class Takes { nothing, word, path, anything };

Takes takes(const cli::Flag& flag) {
  if (flag.value.empty()) return Takes::nothing;
  if (flag.knob != nullptr && !flag.knob->text->choices.front().empty()) return Takes::word;
  const bool is_path = flag.value == "FILE" || flag.value == "PATH" || flag.value == "COMMAND";
  return is_path ? Takes::path : Takes::anything;
}

std::string words_of(const cli::Flag& flag) {
  std::string words;
  for (const auto word : flag.knob->text->choices) {
    if (!word.empty()) words += fmt::format("{}{}", words.empty() ? "" : " ", word);
  }
  return words;
}

bool offered(const cli::Flag& flag) {
  return !flag.hidden;
}

/// "--x", and "--no-x" if that exists.
std::vector<std::string> spellings(const cli::Flag& flag) {
  std::vector<std::string> all{"--" + flag.name};
  if (flag.negatable) all.push_back("--no-" + flag.name);
  return all;
}

/// Whether the ranks' command follows the options.
bool takes_command(const cli::CommandRow& command) {
  return command.tail.starts_with("COMMAND");
}

bool takes_files(const cli::CommandRow& command) {
  return command.tail.starts_with("FILE");
}

std::string summary_of(const cli::Flag& flag) {
  return flag.help.substr(0, flag.help.find(';'));
}

std::string head(std::string_view shell, std::string_view file, std::string_view first) {
  return fmt::format(
      "{}# SPDX-License-Identifier: Apache-2.0\n# Generated: horo-docs {} > completions/{}\n",
      first, shell, file);
}

std::string command_names() {
  std::string names;
  for (const auto& command : cli::commands()) {
    if (!command.name.empty()) names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
  }
  return names;
}

/// The flags of one kind as a pattern for `case`: "--a|--b".
std::string pattern(const cli::CommandRow& command, Takes kind) {
  std::string text;
  for (const auto& flag : command.flags) {
    if (!offered(flag) || takes(flag) != kind) continue;
    text += fmt::format("{}--{}", text.empty() ? "" : "|", flag.name);
    if (flag.letter != '\0') text += fmt::format("|-{}", flag.letter);
  }
  return text;
}

void add_bash_values(std::string& text, const cli::CommandRow& command) {
  for (const auto& flag : command.flags) {
    if (!offered(flag) || takes(flag) != Takes::word) continue;
    text += fmt::format("        --{}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                        flag.name, words_of(flag));
  }
  if (const auto paths = pattern(command, Takes::path); !paths.empty())
    text += fmt::format("        {}) compopt -o default; return ;;\n", paths);
  if (const auto others = pattern(command, Takes::anything); !others.empty())
    text += fmt::format("        {}) return ;;\n", others);
}

/// Skips the options, of which `valued` take the next word too, and completes the ranks' command
/// behind them.
std::string bash_command_offset(std::string_view valued) {
  return fmt::format(
      "      for ((i = 2, value = 0; i < COMP_CWORD; i++)); do\n"
      "        case ${{COMP_WORDS[i]}} in\n"
      "          {}|-np) value=1 ;;\n"
      "          =) value=1 ;;\n"
      "          -*) value=0 ;;\n"
      "          *)\n"
      "            if ((!value)); then\n"
      "              declare -F _command_offset >/dev/null && _command_offset \"$i\"\n"
      "              return\n"
      "            fi\n"
      "            value=0\n"
      "            ;;\n"
      "        esac\n"
      "      done\n",
      valued);
}

std::string bash_case(const cli::CommandRow& command) {
  std::string valued;
  std::string flags;
  for (const auto& flag : command.flags) {
    if (!offered(flag)) continue;
    for (const auto& spelling : spellings(flag))
      flags += fmt::format("{}{}", flags.empty() ? "" : " ", spelling);
    if (takes(flag) == Takes::nothing) continue;
    valued += fmt::format("{}--{}", valued.empty() ? "" : "|", flag.name);
    if (flag.letter != '\0') valued += fmt::format("|-{}", flag.letter);
  }
  auto text = fmt::format("    {})\n", command.name);
  if (takes_command(command)) text += bash_command_offset(valued);
  text += "      case $before in\n";
  add_bash_values(text, command);
  text += "      esac\n";
  text += "      case $word in\n";
  text += fmt::format("        -*) COMPREPLY=($(compgen -W '{}' -- \"$word\")) ;;\n", flags);
  if (takes_command(command)) text += "        *) COMPREPLY=($(compgen -c -- \"$word\")) ;;\n";
  if (takes_files(command)) text += "        *) compopt -o default ;;\n";
  return text + "      esac\n      ;;\n";
}

std::string zsh_escaped(std::string_view help) {
  std::string result;
  for (const char c : help) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_value(const cli::Flag& flag) {
  switch (takes(flag)) {
    case Takes::nothing:
      return {};
    case Takes::word:
      return fmt::format(":word:({})", words_of(flag));
    case Takes::path:
      return ":path:_files";
    case Takes::anything:
      return fmt::format(":{}: ", flag.value);
  }
  return {};
}

std::string zsh_case(const cli::CommandRow& command) {
  auto text = fmt::format("    {})\n      _arguments -S \\\n", command.name);
  for (const auto& flag : command.flags) {
    if (!offered(flag)) continue;
    const auto value = zsh_value(flag);
    for (const auto& spelling : spellings(flag)) {
      const auto argument = fmt::format("{}{}[{}]{}", spelling, value.empty() ? "" : "=",
                                        zsh_escaped(summary_of(flag)), value);
      text += fmt::format("        {} \\\n", shell_quoted(argument));
    }
  }
  if (takes_command(command)) text += "        '(-)*::: := _normal -p horo'";
  if (takes_files(command)) text += "        '*:file:_files'";
  if (!takes_command(command) && !takes_files(command)) text += "       ";
  return text + " && return\n      ;;\n";
}

}  // namespace

std::string bash_completions() {
  auto text = head("bash", "horo.bash", "# shellcheck shell=bash disable=SC2207\n");
  text +=
      "_horo() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} "
      "command=${COMP_WORDS[1]}\n"
      "  local i value\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n";
  text += fmt::format(
      "    COMPREPLY=($(compgen -W '{} --help --version' -- \"$word\"))\n    return\n  fi\n",
      command_names());
  text += "  case $command in\n";
  for (const auto& command : cli::commands()) {
    if (!command.name.empty()) text += bash_case(command);
  }
  return text +
         "  esac\n}\n\n"
         "# horovodrun is horo run.\n"
         "_horovodrun() {\n"
         "  local COMP_LINE=\"horo run${COMP_LINE#\"${COMP_WORDS[0]}\"}\"\n"
         "  local COMP_POINT=${#COMP_LINE} COMP_CWORD=$((COMP_CWORD + 1))\n"
         "  local COMP_WORDS=(horo run \"${COMP_WORDS[@]:1}\")\n"
         "  _horo\n"
         "}\n\ncomplete -F _horo horo\ncomplete -F _horovodrun horovodrun\n";
}

std::string zsh_completions() {
  auto text = head("zsh", "_horo", "#compdef horo horovodrun\n");
  text +=
      "\n_horo() {\n"
      "  if [[ $service == horovodrun ]]; then\n"
      "    words=(horo run ${words[2,-1]})\n"
      "    ((CURRENT++))\n"
      "  fi\n"
      "  local -a commands\n  commands=(\n";
  for (const auto& command : cli::commands()) {
    if (command.name.empty()) continue;
    const auto described = command.name + ":" + zsh_escaped(command.summary);
    text += fmt::format("    {}\n", shell_quoted(described));
  }
  text +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n";
  for (const auto& command : cli::commands()) {
    if (!command.name.empty()) text += zsh_case(command);
  }
  return text + "  esac\n}\n\n_horo \"$@\"\n";
}

std::string fish_completions() {
  auto text = head("fish", "horo.fish", "");
  text += "complete -c horo -f\n";
  for (const auto& command : cli::commands()) {
    if (command.name.empty()) continue;
    text += fmt::format("complete -c horo -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        shell_quoted(command.summary));
    for (const auto& flag : command.flags) {
      if (!offered(flag)) continue;
      std::string value;
      if (takes(flag) == Takes::word)
        value = fmt::format(" -x -a {}", shell_quoted(words_of(flag)));
      if (takes(flag) == Takes::path) value = " -r -F";
      if (takes(flag) == Takes::anything) value = " -x";
      const auto letter = flag.letter == '\0' ? "" : fmt::format(" -s {}", flag.letter);
      text += fmt::format("complete -c horo -n '__fish_seen_subcommand_from {}' -l {}{}{} -d {}\n",
                          command.name, flag.name, letter, value, shell_quoted(summary_of(flag)));
      if (flag.negatable) {
        text += fmt::format("complete -c horo -n '__fish_seen_subcommand_from {}' -l no-{} -d {}\n",
                            command.name, flag.name, shell_quoted("not: " + summary_of(flag)));
      }
    }
    if (takes_command(command)) {
      text += fmt::format(
          "complete -c horo -n '__fish_seen_subcommand_from {}' -a '(__fish_complete_command)'\n",
          command.name);
    }
    if (takes_files(command)) {
      text +=
          fmt::format("complete -c horo -n '__fish_seen_subcommand_from {}' -F\n", command.name);
    }
  }
  return text + "complete -c horovodrun --wraps 'horo run'\n";
}

}  // namespace horo::apps
