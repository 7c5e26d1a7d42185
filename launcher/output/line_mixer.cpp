// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/line_mixer.hpp"

namespace horo::launcher {

namespace {

constexpr std::string_view kErase = "\x1b[K";  // To the end of the line.

}  // namespace

void LineMixer::add(std::string& out, int writer, std::string_view tag, const LinePiece& piece) {
  const bool same_row = piece.continues && last_writer_ == writer;
  // This is the \n of a \r\n that arrived in two parts. Another stream's row has ended the line.
  if (piece.continues && !same_row && piece.body.empty()) return;
  if (open_ && !same_row) out += '\n';
  if (!same_row && redrawn_ && erases_) out += kErase;
  if (!same_row) out += tag;
  out += piece.body;
  out += piece.end;
  last_writer_ = writer;
  open_ = piece.end.empty();
  redrawn_ = piece.end == "\r";
}

void LineMixer::end_row(std::string& out) {
  if (open_) out += '\n';
  if (redrawn_ && erases_) out += kErase;
  open_ = redrawn_ = false;
  last_writer_ = -1;
}

}  // namespace horo::launcher
