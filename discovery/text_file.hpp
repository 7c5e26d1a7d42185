// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo::discovery {

/// The most bytes of host lists that a file or a program may give.
inline constexpr std::size_t kMostHostText = std::size_t{64} << 20U;

/// Reads a whole file that lists hosts. Blocks: for the file. Fails: not_found, permission_denied,
/// io, resource_exhausted (larger than any such file).
Result<std::string> read_text_file(const std::string& path);

/// The words of `text` between any of the `separators`. Pure.
std::vector<std::string_view> words(std::string_view text, std::string_view separators);

}  // namespace horo::discovery
