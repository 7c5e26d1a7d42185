// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/tail.hpp"

#include "base/text/printable.hpp"

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
    auto text = printable(line.text);
    if (line.cut) text += "...";
    if (text.empty() && found.empty()) continue;
    found.push_back(std::move(text));
  }
  while (!found.empty() && found.back().empty()) found.pop_back();
  return found;
}

}  // namespace horo::launcher
