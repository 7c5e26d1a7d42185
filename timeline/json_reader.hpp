// SPDX-License-Identifier: Apache-2.0
// JSON from a stream of any size: values are taken one after the other by whoever knows what to
// expect, and what is of no interest is skipped. Traces have hundreds of millions of values, so
// most of them are read where they lie in the buffer.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "timeline/json_signs.hpp"

namespace horo::timeline {

/// Fills the buffer it is given; 0 at the end. Fails: io.
using ByteSource = std::function<Result<std::size_t>(char* to, std::size_t room)>;

/// Each call that reads a value says false where there is none, or one that is damaged; nothing can
/// be read after that. Texts are valid until the next call. A comma may stand behind the last value
/// of an array or object, and a number may be NaN or Infinity: some programs write so.
/// Thread: owner. Blocks: as the source, never for more than the value that was asked for.
class JsonReader {
 public:
  static constexpr std::size_t kMostText = 512;  ///< Bytes; what is longer is cut.
  static constexpr int kMostDepth = 64;

  explicit JsonReader(const ByteSource& source);

  /// The next byte that is no space; 0: none.
  char peek() {
    for (;;) {
      at_ = timeline::skip(at_, Sign::space);
      if (at_ != end_) return *at_;
      if (!fill()) return '\0';
    }
  }

  /// What some programs put before all else, that the text is UTF-8. False: only its beginning.
  bool byte_order_mark();

  /// A string, number, true, false or null, as text.
  bool scalar(std::string_view& text) { return peek() == '"' ? string(text) : word(text); }

  /// Anything.
  bool skip();

  /// `use(key)` reads the member's value; `key` is valid until then.
  template <typename Use>
  bool object(Use use) {
    return enclosed('{', '}', [&] {
      std::string_view key;
      return name(key) && use(key);
    });
  }

  /// `use()` reads the element.
  template <typename Use>
  bool array(Use use) {
    return enclosed('[', ']', use);
  }

  /// Of the next byte.
  std::uint64_t offset() const {
    return before_ + static_cast<std::uint64_t>(at_ - buffer_.data());
  }

  /// What is in the buffer from the next byte on; a zero follows it.
  const char* ahead() const { return at_; }

  /// `to`, in what was ahead: the next byte.
  void pass(const char* to) { at_ = to; }

  /// Nothing more is to come.
  bool at_end() { return at_ == end_ && !fill(); }

  /// What was wrong; not said where the stream ended too early.
  std::string_view problem() const { return problem_; }

  /// Of the source.
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
      if (next != ',') return broken("neither a comma nor an end");
      ++at_;
    }
    ++at_;
    --depth_;
    return true;
  }

  bool expect(char c) {
    if (peek() != c) return broken("a sign is missing");
    ++at_;
    return true;
  }

  /// A member's, up to its value. It is valid while the buffer is filled anew.
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
  std::vector<char> buffer_;  ///< A zero behind the end stops whoever looks for it.
  const char* at_;
  const char* end_;
  std::string name_;              ///< Of a member whose value is not in the buffer with it.
  std::string pieces_;            ///< Of a text that is not in one piece in the buffer.
  std::uint32_t first_half_ = 0;  ///< Of a pair of \u escapes.
  std::uint64_t before_ = 0;
  int depth_ = 0;
  bool over_ = false;
  std::string_view problem_;
  Status status_;
};

}  // namespace horo::timeline
