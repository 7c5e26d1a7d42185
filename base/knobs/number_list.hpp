// SPDX-License-Identifier: Apache-2.0
// Lists of small whole numbers, as text: "0,2,4".
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace horo {

/// Whole numbers of at most four digits, separated by commas, with blanks before a number or none;
/// or nothing at all.
constexpr bool is_number_list(std::string_view text) {
  int digits = 0;
  for (const char c : text) {
    if (c == ' ' && digits == 0) continue;
    const bool separates = c == ',';
    if (separates ? digits == 0 : c < '0' || c > '9' || digits == 4) return false;
    digits = separates ? 0 : digits + 1;
  }
  return digits != 0 || text.empty();
}

/// How many numbers `list` has. `list` must be a number list.
constexpr std::size_t count_numbers(std::string_view list) {
  const auto commas = static_cast<std::size_t>(std::count(list.begin(), list.end(), ','));
  return list.empty() ? 0 : commas + 1;
}

/// The number at `position`, which must be below count_numbers(list).
constexpr int number_at(std::string_view list, std::size_t position) {
  for (; position != 0; --position) list.remove_prefix(list.find(',') + 1);
  int number = 0;
  for (const char c : list.substr(0, list.find(','))) {
    if (c != ' ') number = number * 10 + (c - '0');
  }
  return number;
}

}  // namespace horo
