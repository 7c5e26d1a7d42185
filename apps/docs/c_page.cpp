// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <fmt/format.h>

#include "apps/docs/comment.hpp"
#include "apps/docs/header_page.hpp"

namespace horo::apps {

namespace {

constexpr std::string_view kApi = "HORO_API ";

std::string without_api(std::string_view code) {
  std::string text;
  for (auto line : lines_of(code)) {
    if (line.starts_with(kApi)) line.remove_prefix(kApi.size());
    text += fmt::format("{}\n", line);
  }
  return text;
}

/// The functions that a piece of C declares; empty if there are none.
std::string functions_of(std::string_view code) {
  std::string names;
  for (auto line : lines_of(code)) {
    if (!line.starts_with(kApi)) continue;
    line = line.substr(0, line.find('('));
    names +=
        fmt::format("{}`{}`", names.empty() ? "" : ", ", line.substr(line.find_last_of(" *") + 1));
  }
  return names;
}

/// The name that a piece of C without functions declares: its last type, or its first macro.
std::string type_or_macro_name(std::string_view code) {
  auto text = trimmed(code);
  if (text.starts_with("#define ")) {
    text.remove_prefix(8);
    return fmt::format("`{}`", text.substr(0, text.find_first_of(" (\n\\")));
  }
  if (text.starts_with("typedef enum") || text.starts_with("typedef struct")) {
    text = text.substr(text.find_last_of('}'));
  }
  text = text.substr(0, text.find_first_of(";)"));
  return fmt::format("`{}`", text.substr(text.find_last_of(" *}") + 1));
}

class CPage {
 public:
  Status add(std::string_view header) {
    const auto lines = lines_of(header);
    std::size_t at = 0;
    while (at < lines.size() && !lines[at].starts_with("#define HORO_ABI_VERSION")) ++at;
    while (at < lines.size() && !lines[at].starts_with("#ifdef __cplusplus")) {
      if (trimmed(lines[at]).empty()) {
        ++at;
        continue;
      }
      HORO_TRY_STATUS(add_entity(lines, at));
    }
    return {};
  }

  std::string text() && { return std::move(text_); }

 private:
  /// Adds one comment and the code behind it, up to the next empty line or comment; moves `at`
  /// behind it.
  Status add_entity(const std::vector<std::string_view>& lines, std::size_t& at) {
    std::string words;
    if (lines[at].starts_with("/*")) {
      auto comment = read_comment(lines, at);
      at = comment.next;
      words = std::move(comment.text);
    }
    if (words.starts_with("-- ")) {
      add_section(words);
      return {};
    }
    std::string code;
    for (; at < lines.size() && !trimmed(lines[at]).empty() && !lines[at].starts_with("/*"); ++at)
      code += fmt::format("{}\n", lines[at]);
    const auto functions = functions_of(code);
    for (const std::string_view label : {"Thread", "Blocks", "Fails"}) {
      if (!functions.empty() && !says(words, label))
        return fail(Errc::invalid_argument, "the comment of {} lacks '{}:'", functions, label);
    }
    text_ +=
        fmt::format("\n### {}\n\n```c\n{}```\n",
                    functions.empty() ? type_or_macro_name(code) : functions, without_api(code));
    if (!words.empty()) text_ += fmt::format("\n{}", markdown(words));
    return {};
  }

  void add_section(std::string_view comment) {
    const auto end = comment.find('\n');
    const auto title = comment.substr(3, end - 3);
    text_ += fmt::format("\n## {}\n", trimmed(title.substr(0, title.find(" --"))));
    if (const auto rest = trimmed(comment.substr(end)); !rest.empty())
      text_ += fmt::format("\n{}", markdown(rest));
  }

  std::string text_;
};

}  // namespace

Result<std::string> c_page(const Header& header) {
  const auto lines = lines_of(header.text);
  std::size_t at = 0;
  while (at < lines.size() && lines[at].find("SPDX") != std::string_view::npos) ++at;
  CPage page;
  HORO_TRY_STATUS(page.add(header.text));
  return fmt::format("\n# {}\n\n{}", header.name,
                     at < lines.size() ? markdown(read_comment(lines, at).text) : "") +
         std::move(page).text();
}

}  // namespace horo::apps
