// SPDX-License-Identifier: Apache-2.0
#include "base/text/printable.hpp"

#include <cstddef>
#include <cstdint>

namespace horo {

namespace {

/// One character of UTF-8.
struct Character {
  std::uint32_t code = 0;
  std::size_t size = 0;  ///< 0: the bytes are not UTF-8.
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {};
  std::uint32_t code = lead & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[size] || surrogate || code > 0x10ffff) return {};
  return {code, size};
}

/// Characters that move the cursor, begin a sequence, end a line or turn the writing direction.
bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

constexpr char kEscape = '\x1b';

/// The size of the terminal sequence at the start of `text`, which begins with ESC.
std::size_t sequence_size(std::string_view text) {
  if (text.size() < 2) return 1;
  std::size_t end = 2;
  if (text[1] == '[') {
    while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
    return end < text.size() ? end + 1 : end;
  }
  constexpr std::string_view kStrings = "]P^_X";  // They end with BEL or ESC \.
  if (kStrings.find(text[1]) == std::string_view::npos) return 1;
  while (end < text.size() && text[end] != '\a' && text[end] != kEscape && text[end] != '\n') ++end;
  if (text.substr(end).starts_with("\x1b\\")) return end + 2;
  return end < text.size() && text[end] == '\a' ? end + 1 : end;
}

std::string cleaned(std::string_view text, char line_end) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto character = first_of(text);
    auto size = character.size;
    if (size == 0) {
      out += '?';
      size = 1;
    } else if (text.front() == kEscape) {
      size = sequence_size(text);
    } else if (text.front() == '\n') {
      out += line_end;
    } else if (text.front() == '\t' || !is_control(character.code)) {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  return cleaned(text, ' ');
}

std::string printable_lines(std::string_view text) {
  return cleaned(text, '\n');
}

}  // namespace horo
