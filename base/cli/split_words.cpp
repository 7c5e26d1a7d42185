// SPDX-License-Identifier: Apache-2.0
#include "base/cli/split_words.hpp"

namespace horo {

namespace {

constexpr std::string_view kBlanks = " \t\n\r";

}  // namespace

Result<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;  // Inside a word. A word may be empty: ''.
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (kBlanks.find(c) != std::string_view::npos) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == '\\' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else if (c == '\'' || c == '"') {
      const auto end = text.find(c, i + 1);
      if (end == std::string_view::npos) {
        return fail(Errc::invalid_argument, "the quote {} in '{}' does not end", c, text);
      }
      words.back() += text.substr(i + 1, end - i - 1);
      i = end;
    } else {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace horo
