// SPDX-License-Identifier: Apache-2.0
// A range of whole numbers as text: "10,100" or "10 100".
#pragma once

#include <optional>
#include <string_view>

namespace horo {

struct NumberRange {
  int least = 0;
  int most = 0;

  friend constexpr bool operator==(const NumberRange&, const NumberRange&) = default;
};

/// Two numbers of at most nine digits with a comma or blanks between them; nothing for other text.
constexpr std::optional<NumberRange> parse_number_range(std::string_view text) {
  int numbers[2] = {0, 0};
  int digits[2] = {0, 0};
  int at = 0;
  int commas = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      if (++digits[at] > 9) return std::nullopt;
      numbers[at] = numbers[at] * 10 + (c - '0');
      continue;
    }
    if (c != ' ' && c != ',') return std::nullopt;
    if (c == ',' && (++commas > 1 || digits[0] == 0)) return std::nullopt;
    if (digits[0] != 0) at = 1;
    if (digits[1] != 0) return std::nullopt;
  }
  if (digits[0] == 0 || digits[1] == 0) return std::nullopt;
  return NumberRange{numbers[0], numbers[1]};
}

/// Whether `text` is empty or a range of seconds for which a host may be put aside.
constexpr bool is_cooldown_range(std::string_view text) {
  const auto range = parse_number_range(text);
  if (!range) return text.empty();
  return range->least >= 1 && range->most <= 3600 && range->least <= range->most;
}

}  // namespace horo
