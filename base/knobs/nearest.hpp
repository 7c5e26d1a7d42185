// SPDX-License-Identifier: Apache-2.0
// Suggests the known word that is closest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace horo {

/// Number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
int edit_distance(std::string_view a, std::string_view b);

/// The word in `known` that is closest to `word`; empty if none is similar enough.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known);

/// "; did you mean 'x'?" or an empty text, for the end of a message about an unknown word.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace horo
