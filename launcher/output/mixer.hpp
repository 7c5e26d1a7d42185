// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "launcher/output/line_assembler.hpp"

namespace horo::launcher {

/// Lays the lines of many streams one after the other into one text, each behind its tag, so that
/// no row holds the output of two. Thread: owner.
class LineMixer {
 public:
  /// For a terminal: what takes the place of a line that ended with a carriage return erases the
  /// rest of it.
  void erase_redrawn() { erases_ = true; }

  /// Appends `piece` of stream `writer` to `out`. The tag of a piece that continues the row before
  /// it is left out.
  void add(std::string& out, int writer, std::string_view tag, const LinePiece& piece);

  /// Ends an unterminated row before text of our own follows.
  void end_row(std::string& out);

 private:
  int last_writer_ = -1;
  bool open_ = false;     // The last row has no end yet.
  bool redrawn_ = false;  // It ended with \r.
  bool erases_ = false;
};

}  // namespace horo::launcher
