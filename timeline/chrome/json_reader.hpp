// SPDX-License-Identifier: Apache-2.0
// Reads JSON from a stream of any size. The caller takes the values that it expects one after the
// other, and skips the others. Traces have hundreds of millions of values, so most values are read
// in place in the buffer.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "timeline/chrome/json_characters.hpp"

namespace horo::timeline {

/// Fills the given buffer and returns the number of bytes; 0 at the end. Fails: io.
using ByteSource = std::function<Result<std::size_t>(char* to, std::size_t room)>;

/// Each call that reads a value returns false where the value is missing or damaged; nothing can be
/// read after that. Texts are valid until the next call. A comma may follow the last value of an
/// array or object, and a number may be NaN or Infinity, because some programs write these.
/// Thread: owner. Blocks: as the source, and only until the requested value is there.
class JsonReader {
 public:
  static constexpr std::size_t kMostText = 512;  ///< Longer texts are cut to so many bytes.
  static constexpr int kMostDepth = 64;

  explicit JsonReader(const ByteSource& source);

  /// The next byte that is not a space; 0 at the end.
  char peek() {
    for (;;) {
      at_ = skip_all(at_, CharClass::space);
      if (at_ != end_) return *at_;
      if (!fill()) return '\0';
    }
  }

  /// Skips a UTF-8 byte-order mark, which some programs write first. False: the mark is incomplete.
  bool byte_order_mark();

  /// A string, number, true, false or null, as text.
  bool scalar(std::string_view& text) { return peek() == '"' ? string(text) : word(text); }

  /// Skips a value of any type.
  bool skip();

  /// Calls `use(key)` to read each member's value; `key` is valid until the value is read.
  template <typename Use>
  bool object(Use use) {
    return enclosed('{', '}', [&] {
      std::string_view key;
      return name(key) && use(key);
    });
  }

  /// Calls `use()` to read each element.
  template <typename Use>
  bool array(Use use) {
    return enclosed('[', ']', use);
  }

  /// Position of the next byte in the stream.
  std::uint64_t offset() const {
    return before_ + static_cast<std::uint64_t>(at_ - buffer_.data());
  }

  /// The bytes in the buffer from the next one on, followed by a zero.
  const char* ahead() const { return at_; }

  /// Goes on at `to`, which points into ahead().
  void pass(const char* to) { at_ = to; }

  /// Whether the stream has no more bytes.
  bool at_end() { return at_ == end_ && !fill(); }

  /// Describes the fault in the JSON; empty where the stream ended too early.
  std::string_view problem() const { return problem_; }

  /// The source's error, if it failed.
  const Status& status() const { return status_; }

 private:
  template <typename Use>
  bool enclosed(char first, char last, Use use) {
    if (!expect(first)) return false;
    if (++depth_ > kMostDepth) return broken("too deep");
    for (;;) {
      if (peek() == last) break;
      if (!use()) return false;
      const char next = peek();
      if (next == last) break;
      if (next != ',') return broken("expected a comma or an end");
      ++at_;
    }
    ++at_;
    --depth_;
    return true;
  }

  bool expect(char c) {
    if (peek() != c) return broken("a character is missing");
    ++at_;
    return true;
  }

  /// Reads a member's name, up to its value. `key` stays valid when the buffer is filled again.
  bool name(std::string_view& key);
  bool string(std::string_view& text);
  bool string_in_pieces(const char* from, std::string_view& text);
  bool escape();
  bool hex(std::uint32_t& code);
  void add_utf8(std::uint32_t code);
  bool word(std::string_view& text);
  bool broken(std::string_view problem);
  bool fill();

  const ByteSource& source_;
  std::vector<char> buffer_;  ///< A zero behind the last byte stops scans.
  const char* at_;
  const char* end_;
  std::string name_;              ///< Copy of a member's name whose value is not in the buffer.
  std::string pieces_;            ///< A text that does not lie in the buffer in one piece.
  std::uint32_t first_half_ = 0;  ///< First half of a surrogate pair of \u escapes.
  std::uint64_t before_ = 0;
  int depth_ = 0;
  bool over_ = false;
  std::string_view problem_;
  Status status_;
};

}  // namespace horo::timeline
