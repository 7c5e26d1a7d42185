// SPDX-License-Identifier: Apache-2.0
// Lists of numbers on the command lines of measured programs: "0,65536,1048576".
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <vector>

namespace horo::bench {

/// Empty if the text is not such a list.
inline std::vector<std::uint64_t> parse_numbers(const char* text) {
  std::vector<std::uint64_t> result;
  for (const char* at = text; *at != 0;) {
    std::uint64_t number = 0;
    const auto* const end = std::from_chars(at, at + std::strlen(at), number).ptr;
    if (end == at) return {};
    result.push_back(number);
    at = *end == ',' ? end + 1 : end;
  }
  return result;
}

}  // namespace horo::bench
