// SPDX-License-Identifier: Apache-2.0
// Figures for people and for programs. Pure.
#pragma once

#include <string>
#include <string_view>

#include "apps/timeline_view/analysis.hpp"

namespace horo::apps {

std::string as_text(const Figures& figures);
/// The first line of it.
std::string summary_text(const Figures& figures);
std::string as_json(const Figures& figures);
/// The table of ranks, with a header line.
std::string as_csv(const Figures& figures);
/// Two timelines beside each other: what each took, and the second's share of the first.
std::string compare_text(const Figures& before, const Figures& after);
std::string compare_json(const Figures& before, const Figures& after);

/// Names may hold what a terminal obeys, further lines, or bytes that are no text: '?' in its
/// place.
std::string printable(std::string text);

/// JSON of several lines as one that ends.
std::string one_line(std::string_view json);

}  // namespace horo::apps
