// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "launcher/output/line_assembler.hpp"

namespace horo::launcher {

/// Writes the lines of many streams into one text, each behind its tag. No row holds the output of
/// two streams. Thread: owner.
class LineMixer {
 public:
  /// For a terminal: text that replaces a line ended by a carriage return erases the rest of that
  /// line.
  void erase_redrawn() { erases_ = true; }

  /// Appends `piece` of stream `writer` to `out`. A piece that continues the row before it gets no
  /// tag.
  void add(std::string& out, int writer, std::string_view tag, const LinePiece& piece);

  /// Ends an incomplete row, so that text of the launcher can follow.
  void end_row(std::string& out);

 private:
  int last_writer_ = -1;
  bool open_ = false;     // The last row is incomplete.
  bool redrawn_ = false;  // It ended with \r.
  bool erases_ = false;
};

}  // namespace horo::launcher
