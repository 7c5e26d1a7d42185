// SPDX-License-Identifier: Apache-2.0
// Bytes of one stream become lines. A line ends with \n, \r or \r\n (progress bars redraw with \r).
#pragma once

#include <string>
#include <string_view>

namespace horo::launcher {

/// A line or, when it grows too long, a part of one.
struct LinePiece {
  std::string_view body;   ///< Without its end.
  std::string_view end;    ///< "\n", "\r", "\r\n", or empty: the line goes on.
  bool continues = false;  ///< It goes on with the line of the piece before.
};

/// Keeps what has no end yet, about kLongest bytes at most: a longer line is passed on in pieces,
/// cut between UTF-8 characters. Bytes that arrive split come out whole. Thread: owner.
class LineAssembler {
 public:
  static constexpr std::size_t kLongest = 64 * 1024;

  /// Calls `take(const LinePiece&)` for what `bytes` completes; the views live for that call.
  template <typename Take>
  void feed(std::string_view bytes, Take&& take) {
    while (!bytes.empty()) {
      if (LinePiece piece; next(bytes, piece)) {
        take(piece);
        pending_.clear();
      }
    }
  }

  /// Whether there is a line without an end.
  bool pending() const { return !pending_.empty(); }

  /// The stream has ended: passes the unterminated rest, if any, as a piece without an end.
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
