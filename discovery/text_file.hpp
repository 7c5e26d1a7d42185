// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo::discovery {

/// All of a file that lists hosts. Blocks: for the file.
/// Fails: not_found, permission_denied, io, resource_exhausted (larger than any such file is).
Result<std::string> read_text_file(const std::string& path);

/// What stands between any of the `separators`. Pure.
std::vector<std::string_view> words(std::string_view text, std::string_view separators);

}  // namespace horo::discovery
