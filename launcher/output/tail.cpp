// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/tail.hpp"

#include <algorithm>

namespace horo::launcher {

void Tail::add(const LinePiece& piece) {
  Line* last = next_ == 0 ? nullptr : &ring_[(next_ - 1) % kLines];
  if (piece.continues && piece.body.empty()) {  // The end of a line that is stored already.
    if (last != nullptr) last->redrawn = false;
    return;
  }
  const bool append = piece.continues && last != nullptr;
  Line& line = append                               ? *last
               : (last != nullptr && last->redrawn) ? *last
                                                    : ring_[next_++ % kLines];
  if (!append) {
    line.text.clear();
    line.cut = false;
  }
  const auto room = kLongest - line.text.size();
  line.text += piece.body.substr(0, room);
  line.cut = line.cut || piece.body.size() > room;
  line.redrawn = piece.end == "\r";
}

std::vector<std::string> Tail::lines() const {
  std::vector<std::string> found;
  for (std::size_t i = next_ < kLines ? 0 : next_ - kLines; i < next_; ++i) {
    const auto& line = ring_[i % kLines];
    auto text = plain(line.text);
    if (line.cut) text += "...";
    if (text.empty() && found.empty()) continue;
    found.push_back(std::move(text));
  }
  while (!found.empty() && found.back().empty()) found.pop_back();
  return found;
}

std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == 0x1b && i + 1 < text.size() && text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
    } else if (c == '\t' || (c >= 0x20 && c != 0x7f)) {
      out += text[i];
    }
  }
  return out;
}

}  // namespace horo::launcher
