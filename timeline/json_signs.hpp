// SPDX-License-Identifier: Apache-2.0
// What a byte of JSON may be, by a table: readers look at each byte of gigabytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace horo::timeline {

enum class Sign : std::uint8_t {
  space = 1,
  plain = 2,   ///< Stands for itself in a string.
  number = 4,  ///< Digits, signs and the point.
  digit = 8,
  name = 16,  ///< Letters.
};

/// A zero is nothing.
inline constexpr std::array<std::uint8_t, 256> kSigns = [] {
  std::array<std::uint8_t, 256> signs{};
  const auto add = [&signs](std::size_t c, Sign sign) {
    signs.at(c) |= static_cast<std::uint8_t>(sign);
  };
  constexpr std::size_t kFirstPrintable = 0x20;
  for (std::size_t c = kFirstPrintable; c < signs.size(); ++c) {
    if (c != '"' && c != '\\') add(c, Sign::plain);
  }
  for (const unsigned char c : {' ', '\n', '\r', '\t'}) add(c, Sign::space);
  for (const unsigned char c : {'-', '+', '.'}) add(c, Sign::number);
  for (std::size_t c = '0'; c <= '9'; ++c) {
    add(c, Sign::number);
    add(c, Sign::digit);
  }
  for (std::size_t c = 'a'; c <= 'z'; ++c) add(c, Sign::name);
  for (std::size_t c = 'A'; c <= 'Z'; ++c) add(c, Sign::name);
  return signs;
}();

inline bool is(char c, Sign sign) {
  return (kSigns[static_cast<unsigned char>(c)] & static_cast<std::uint8_t>(sign)) != 0;
}

/// Over all of this sort. Something else must follow sooner or later.
inline const char* skip(const char* at, Sign sign) {
  while (is(*at, sign)) ++at;
  return at;
}

}  // namespace horo::timeline
