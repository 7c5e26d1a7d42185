// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo {

/// Splits text into words as a shell does, with quotes and backslashes, but expands nothing.
/// Fails: invalid_argument (a quote that does not end).
Result<std::vector<std::string>> split_words(std::string_view text);

}  // namespace horo
