// SPDX-License-Identifier: Apache-2.0
// Character classes of JSON in a table, because readers examine each byte of gigabytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace horo::timeline {

enum class CharClass : std::uint8_t {
  space = 1,
  plain = 2,   ///< Needs no escape in a string.
  number = 4,  ///< A digit, a sign or the decimal point.
  digit = 8,
  name = 16,  ///< A letter.
};

/// The byte 0 is in no class, so that it ends every scan.
inline constexpr std::array<std::uint8_t, 256> kCharClasses = [] {
  std::array<std::uint8_t, 256> signs{};
  const auto add = [&signs](std::size_t c, CharClass sign) {
    signs.at(c) |= static_cast<std::uint8_t>(sign);
  };
  constexpr std::size_t kFirstPrintable = 0x20;
  for (std::size_t c = kFirstPrintable; c < signs.size(); ++c) {
    if (c != '"' && c != '\\') add(c, CharClass::plain);
  }
  for (const unsigned char c : {' ', '\n', '\r', '\t'}) add(c, CharClass::space);
  for (const unsigned char c : {'-', '+', '.'}) add(c, CharClass::number);
  for (std::size_t c = '0'; c <= '9'; ++c) {
    add(c, CharClass::number);
    add(c, CharClass::digit);
  }
  for (std::size_t c = 'a'; c <= 'z'; ++c) add(c, CharClass::name);
  for (std::size_t c = 'A'; c <= 'Z'; ++c) add(c, CharClass::name);
  return signs;
}();

inline bool is(char c, CharClass sign) {
  return (kCharClasses[static_cast<unsigned char>(c)] & static_cast<std::uint8_t>(sign)) != 0;
}

/// Returns the first character from `at` on that is not in the class. There must be one.
inline const char* skip_all(const char* at, CharClass sign) {
  while (is(*at, sign)) ++at;
  return at;
}

}  // namespace horo::timeline
