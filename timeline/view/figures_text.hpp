// SPDX-License-Identifier: Apache-2.0
// Figures as text, JSON and CSV. Pure.
#pragma once

#include <string>
#include <string_view>

#include "timeline/analysis/analysis.hpp"

namespace horo::timeline {

std::string as_text(const Figures& figures);
/// The first line of as_text().
std::string summary_text(const Figures& figures);
std::string as_json(const Figures& figures);
/// The table of ranks as CSV, with a header line.
std::string as_csv(const Figures& figures);
/// Two timelines side by side, with the ratio of the second to the first.
std::string compare_text(const Figures& before, const Figures& after);
std::string compare_json(const Figures& before, const Figures& after);

/// Replaces control characters, line ends and bytes that are not UTF-8 by '?'. Names come from
/// files and could otherwise control the terminal.
std::string printable(std::string text);

/// Converts JSON of several lines to one line that ends with a line end.
std::string one_line(std::string_view json);

}  // namespace horo::timeline
