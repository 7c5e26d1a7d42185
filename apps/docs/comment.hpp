// SPDX-License-Identifier: Apache-2.0
// Converts comments of public headers to Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace horo::apps {

std::string_view trimmed(std::string_view text);

/// The lines without their ends; they are views into `text`.
std::vector<std::string_view> lines_of(std::string_view text);

/// The text of a comment without comment marks, and the line behind it.
struct Comment {
  std::string text;
  std::size_t next = 0;
};

/// Reads the comment that begins in line `at`: a block comment, or lines that begin with ///.
Comment read_comment(const std::vector<std::string_view>& lines, std::size_t at);

/// Whether a comment has a separate sentence for `label`, as in "Fails: NOT_FOUND."
bool says(std::string_view comment, std::string_view label);

/// Paragraphs and indented code as Markdown. Sentences with one of the labels of the project's
/// headers (Units, Memory, Thread, Blocks, Fails) become a list.
std::string markdown(std::string_view comment);

}  // namespace horo::apps
