// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/line_assembler.hpp"

#include <algorithm>

namespace horo::launcher {

namespace {

constexpr std::size_t kLongestCharacter = 4;

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

/// Position of the first line end in `text`; npos: it has none.
std::size_t find_end(std::string_view text) {
  const auto newline = text.find('\n');
  return std::min(newline, text.substr(0, newline).find('\r'));
}

}  // namespace

/// Takes the front of `bytes`; true when that completes a piece.
bool LineAssembler::next(std::string_view& bytes, LinePiece& piece) {
  if (after_return_) {
    after_return_ = false;
    if (bytes.front() == '\n') {
      piece = {.body = {}, .end = bytes.substr(0, 1), .continues = true};
      bytes.remove_prefix(1);
      return true;
    }
  }
  const std::size_t room = kLongest - std::min(kLongest, pending_.size());
  const auto end = find_end(bytes.substr(0, room + 1));
  if (end == std::string_view::npos) {
    // A cut must not split a character, even if its last bytes have not arrived yet.
    const std::size_t most = kLongest + kLongestCharacter - 1 - pending_.size();
    std::size_t cut = room;
    while (cut < std::min(most, bytes.size()) && continues_character(bytes[cut])) ++cut;
    if (bytes.size() <= cut && cut < most) {
      pending_ += bytes;
      bytes = {};
      return false;
    }
    pending_ += bytes.substr(0, cut);
    bytes.remove_prefix(cut);
    piece = {.body = pending_, .end = {}, .continues = open_};
    open_ = true;
    return true;
  }
  const bool both = bytes[end] == '\r' && end + 1 < bytes.size() && bytes[end + 1] == '\n';
  after_return_ = bytes[end] == '\r' && end + 1 == bytes.size();
  auto body = bytes.substr(0, end);
  if (!pending_.empty()) {
    pending_ += body;
    body = pending_;
  }
  piece = {.body = body, .end = bytes.substr(end, both ? 2 : 1), .continues = open_};
  open_ = false;
  bytes.remove_prefix(end + (both ? 2 : 1));
  return true;
}

}  // namespace horo::launcher
