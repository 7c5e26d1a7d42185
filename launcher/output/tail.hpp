// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "launcher/output/line_assembler.hpp"

namespace horo::launcher {

/// The last lines of one rank, from both its streams, for the report. Long lines are cut, and a
/// line that a progress bar redraws counts once. Thread: owner.
class Tail {
 public:
  static constexpr std::size_t kLines = 10;
  static constexpr std::size_t kLongest = 1000;  ///< Bytes that are kept of a line.

  void add(const LinePiece& piece);

  /// Oldest first, without control characters and terminal sequences; no empty line at either end.
  std::vector<std::string> lines() const;

 private:
  struct Line {
    std::string text;
    bool cut = false;
    bool redrawn = false;  // It ended with \r, so the next line replaces it.
  };

  std::array<Line, kLines> ring_;
  std::size_t next_ = 0;  // Lines begun so far.
};

}  // namespace horo::launcher
