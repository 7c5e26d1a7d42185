// SPDX-License-Identifier: Apache-2.0
#include "base/cli/help.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/knobs/value.hpp"

namespace horo::cli {

namespace {

constexpr std::size_t kHelpColumn = 34;

/// Appends `text` word by word, continuing at `indent` after `width` columns.
void append_wrapped(std::string& out, std::string_view text, std::size_t indent,
                    std::size_t width) {
  std::size_t column = indent;
  bool first = true;
  while (!text.empty()) {
    const auto space = std::min(text.find(' '), text.size());
    const auto word = text.substr(0, space);
    if (!first && column + 1 + word.size() > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  out += '\n';
}

void append_entry(std::string& out, std::string_view left, std::string_view right,
                  std::size_t width) {
  out += fmt::format("  {}", left);
  if (left.size() + 4 > kHelpColumn) {
    out += '\n';
    out.append(kHelpColumn, ' ');
  } else {
    out.append(kHelpColumn - left.size() - 2, ' ');
  }
  append_wrapped(out, right, kHelpColumn, width);
}

std::vector<std::string> groups_of(const CommandRow& command) {
  std::vector<std::string> groups;
  for (const auto& flag : command.flags) {
    if (!flag.hidden && std::find(groups.begin(), groups.end(), flag.group) == groups.end()) {
      groups.push_back(flag.group);
    }
  }
  return groups;
}

}  // namespace

std::string usage_line(const CommandRow& command) {
  std::string line = "usage: horo";
  if (!command.name.empty()) line += " " + command.name;
  line += " [OPTION...]";
  if (!command.tail.empty()) line += " " + command.tail;
  return line;
}

std::string flag_spellings(const Flag& flag) {
  std::string text;
  if (flag.letter != '\0') text = fmt::format("-{}, ", flag.letter);
  text += flag.negatable ? "--[no-]" : "--";
  text += flag.name;
  for (const auto& other : flag.also) text += ", --" + other;
  if (!flag.value.empty()) text += " " + flag.value;
  return text;
}

std::string flag_help(const Flag& flag) {
  std::string text = flag.help;
  if (flag.knob == nullptr) return text;
  const KnobRow& row = *flag.knob;
  if (row.kind != KnobKind::text && row.kind != KnobKind::boolean) text += "; " + allowed(row);
  if (const auto fallback = format_fallback(row); !fallback.empty()) {
    text += fmt::format(" [default: {}]", fallback);
  }
  if (!row.text->inert.empty()) text += fmt::format(" [no effect: {}]", row.text->inert);
  return text;
}

std::string help_text(const CommandRow& command, const std::vector<const CommandRow*>& listed,
                      std::size_t width) {
  std::string out = usage_line(command) + "\n\n" + command.summary + "\n";
  if (!listed.empty()) out += "\nCommands:\n";
  for (const CommandRow* other : listed) append_entry(out, other->name, other->summary, width);
  for (const auto& group : groups_of(command)) {
    out += fmt::format("\n{}:\n", group);
    for (const auto& flag : command.flags) {
      if (!flag.hidden && flag.group == group)
        append_entry(out, flag_spellings(flag), flag_help(flag), width);
    }
  }
  if (command.name == "tune") {
    out +=
        "\nOptions must come before the command, which is started as horo run starts it. Knobs "
        "that "
        "are set by\n"
        "flag, variable or file are not tuned.\n";
  }
  if (command.name == "run") {
    out +=
        "\nOptions must come before the command; everything after it belongs to the command. Each "
        "option with a\n"
        "default is also a variable, --fusion-threshold as HORO_FUSION_THRESHOLD, and a key of the "
        "config\n"
        "file. A flag has priority over the environment, and the environment over the file.\n";
  }
  return out;
}

}  // namespace horo::cli
