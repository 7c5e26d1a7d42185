// SPDX-License-Identifier: Apache-2.0
// Comments of public headers as Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace horo::apps {

std::string_view trimmed(std::string_view text);

/// Without their ends; views into `text`.
std::vector<std::string_view> lines_of(std::string_view text);

/// What a comment says, without its marks, and the line behind it.
struct Comment {
  std::string text;
  std::size_t next = 0;
};

/// The comment that begins in line `at`: a block, or lines that begin with ///.
Comment read_comment(const std::vector<std::string_view>& lines, std::size_t at);

/// Whether a comment has a sentence of its own for `label`, as in "Fails: NOT_FOUND."
bool says(std::string_view comment, std::string_view label);

/// Paragraphs and indented code as Markdown; a sentence with one of the labels of the project's
/// headers (Units, Memory, Thread, Blocks, Fails) is an item of a list.
std::string markdown(std::string_view comment);

}  // namespace horo::apps
