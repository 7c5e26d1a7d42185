// SPDX-License-Identifier: Apache-2.0
// "did you mean": the known word closest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace horo {

/// Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`.
int edit_distance(std::string_view a, std::string_view b);

/// The word of `known` that is closest to `word`; empty when none is similar enough to suggest.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known);

/// "; did you mean 'x'?" or nothing: the end of a message about an unknown word.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace horo
