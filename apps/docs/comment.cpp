// SPDX-License-Identifier: Apache-2.0
#include "apps/docs/comment.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace horo::apps {

namespace {

constexpr std::array<std::string_view, 5> kLabels{"Units", "Memory", "Thread", "Blocks", "Fails"};

/// Position at which a sentence with this label begins; npos if there is none.
std::size_t find_label(std::string_view text, std::string_view label, std::size_t from = 0) {
  const auto mark = fmt::format("{}:", label);
  const auto is_space = [text](std::size_t at) { return text[at] == ' ' || text[at] == '\n'; };
  for (auto at = text.find(mark, from); at != std::string_view::npos;
       at = text.find(mark, at + 1)) {
    const auto end = at + mark.size();
    if ((at == 0 || is_space(at - 1)) && end < text.size() && is_space(end)) return at;
  }
  return std::string_view::npos;
}

std::size_t next_label(std::string_view text, std::size_t from) {
  std::size_t first = text.size();
  for (const auto label : kLabels) first = std::min(first, find_label(text, label, from));
  return first;
}

bool is_code(std::string_view line) {
  return line.starts_with("  ") && !trimmed(line).empty();
}

/// Puts an empty line between paragraphs and blocks of indented lines.
std::string with_code(std::string_view text) {
  std::string result;
  bool open = false;
  bool gap = false;
  for (const auto line : lines_of(text)) {
    if (trimmed(line).empty()) {
      gap = true;
      continue;
    }
    const bool turns = is_code(line) != open;
    if (turns && open) result += "```\n";
    if ((turns || gap) && !result.empty()) result += '\n';
    if (turns && !open) result += "```\n";
    open = is_code(line);
    gap = false;
    result += fmt::format("{}\n", open ? line.substr(2) : trimmed(line));
  }
  return result + (open ? "```\n" : "");
}

std::string joined(std::string_view text) {
  std::string line;
  for (const auto part : lines_of(text)) {
    if (!line.empty()) line += ' ';
    line += trimmed(part);
  }
  return line;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Comment read_comment(const std::vector<std::string_view>& lines, std::size_t at) {
  Comment comment{.text = {}, .next = at};
  const bool block = trimmed(lines[at]).starts_with("/*");
  for (bool open = true; open && comment.next < lines.size(); ++comment.next) {
    auto text = trimmed(lines[comment.next]);
    if (block) {
      const auto end = text.find("*/");
      open = end == std::string_view::npos;
      text = text.substr(0, std::min(end, text.size()));
      if (text.starts_with("/*")) text.remove_prefix(2);
      if (text.starts_with("*")) text.remove_prefix(1);
    } else {
      if (!text.starts_with("///")) break;
      text.remove_prefix(3);
    }
    if (text.starts_with(' ')) text.remove_prefix(1);
    comment.text += fmt::format("{}\n", text);
  }
  return comment;
}

bool says(std::string_view comment, std::string_view label) {
  return find_label(comment, label) != std::string_view::npos;
}

std::string markdown(std::string_view comment) {
  const auto first = next_label(comment, 0);
  auto text = with_code(comment.substr(0, first));
  std::string list;
  for (auto at = first; at < comment.size();) {
    const auto end = next_label(comment, at + 1);
    const auto item = joined(trimmed(comment.substr(at, end - at)));
    const auto colon = item.find(": ");
    list += fmt::format("- **{}** {}\n", item.substr(0, colon + 1), item.substr(colon + 2));
    at = end;
  }
  if (!text.empty() && !list.empty()) text += '\n';
  return text + list;
}

}  // namespace horo::apps
