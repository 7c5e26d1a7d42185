// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/mixer.hpp"

namespace horo::launcher {

void LineMixer::add(std::string& out, int writer, std::string_view tag, const LinePiece& piece) {
  const bool same_row = piece.continues && last_writer_ == writer;
  // The \n of a \r\n that arrived apart: another stream's row has ended the line meanwhile.
  if (piece.continues && !same_row && piece.body.empty()) return;
  if (open_ && !same_row) out += '\n';
  if (!same_row) out += tag;
  out += piece.body;
  out += piece.end;
  last_writer_ = writer;
  open_ = piece.end.empty();
}

void LineMixer::end_row(std::string& out) {
  if (open_) out += '\n';
  open_ = false;
  last_writer_ = -1;
}

}  // namespace horo::launcher
