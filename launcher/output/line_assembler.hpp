// SPDX-License-Identifier: Apache-2.0
// Splits one stream of bytes into lines. A line ends with \n, \r or \r\n; progress bars redraw
// their line with \r.
#pragma once

#include <string>
#include <string_view>

namespace horo::launcher {

/// A line, or a part of a line that is too long.
struct LinePiece {
  std::string_view body;   ///< Without its end.
  std::string_view end;    ///< "\n", "\r", "\r\n"; empty: the line continues.
  bool continues = false;  ///< It continues the line of the piece before.
};

/// Keeps an incomplete line until its end arrives. A line longer than about kLongest bytes is
/// passed on in pieces, cut between UTF-8 characters. Thread: owner.
class LineAssembler {
 public:
  static constexpr std::size_t kLongest = 64 * 1024;

  /// Calls `take(const LinePiece&)` for every line that `bytes` completes. The views are valid
  /// during that call.
  template <typename Take>
  void feed(std::string_view bytes, Take&& take) {
    while (!bytes.empty()) {
      if (LinePiece piece; next(bytes, piece)) {
        take(piece);
        pending_.clear();
      }
    }
  }

  /// Whether an incomplete line is kept.
  bool pending() const { return !pending_.empty(); }

  /// At the end of the stream: passes on an incomplete line, if any, as a piece without an end.
  template <typename Take>
  void finish(Take&& take) {
    if (pending_.empty()) return;
    take(LinePiece{.body = pending_, .end = {}, .continues = open_});
    pending_.clear();
    open_ = true;
  }

 private:
  bool next(std::string_view& bytes, LinePiece& piece);

  std::string pending_;
  bool open_ = false;          // The last piece had no end.
  bool after_return_ = false;  // The last piece ended with \r, and \n may follow.
};

}  // namespace horo::launcher
