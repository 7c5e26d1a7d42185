// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome/json_reader.hpp"

#include <algorithm>

namespace horo::timeline {

namespace {

constexpr std::size_t kBuffer = std::size_t{256} << 10U;
constexpr std::uint32_t kReplacement = 0xfffd;  ///< Stands for half of a surrogate pair.

/// Whether `text` is a literal or looks like a number; the number itself is checked by its reader.
bool is_word(std::string_view text) {
  if (text.empty()) return false;
  if (text.front() == '-') text.remove_prefix(1);
  if (!text.empty() && is(text.front(), CharClass::digit)) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return is(c, CharClass::number) || c == 'e' || c == 'E'; });
  }
  constexpr std::array<std::string_view, 6> kWords{"true", "false", "null",
                                                   "NaN",  "Inf",   "Infinity"};
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

}  // namespace

JsonReader::JsonReader(const ByteSource& source)
    : source_(source), buffer_(kBuffer + 1), at_(buffer_.data()), end_(at_) {}

bool JsonReader::fill() {
  if (over_) return false;
  before_ += static_cast<std::uint64_t>(end_ - buffer_.data());
  at_ = end_ = buffer_.data();
  auto got = source_(buffer_.data(), kBuffer);
  buffer_[got ? *got : 0] = '\0';
  if (!got) {
    status_ = Failure(std::move(got).error());
    over_ = true;
    return false;
  }
  end_ += *got;
  over_ = *got == 0;
  return !over_;
}

bool JsonReader::byte_order_mark() {
  if (peek() != '\xef') return true;
  for (const char c : {'\xef', '\xbb', '\xbf'}) {
    if ((at_ == end_ && !fill()) || *at_ != c) return broken("an incomplete byte-order mark");
    ++at_;
  }
  return true;
}

bool JsonReader::broken(std::string_view problem) {
  if (problem_.empty()) problem_ = problem;
  return false;
}

bool JsonReader::skip() {
  const char c = peek();
  if (c == '{') return object([this](std::string_view /*key*/) { return skip(); });
  if (c == '[') return array([this] { return skip(); });
  std::string_view text;
  return scalar(text);
}

bool JsonReader::name(std::string_view& key) {
  if (peek() != '"') return broken("a member has no name");
  if (!string(key)) return false;
  const auto* next = skip_all(at_, CharClass::space);
  if (*next == ':') {
    next = skip_all(next + 1, CharClass::space);
    if (next != end_) {
      at_ = next;
      return true;
    }
  }
  key = name_ = key;
  return expect(':');
}

bool JsonReader::string(std::string_view& text) {
  const auto* const from = ++at_;
  at_ = skip_all(at_, CharClass::plain);
  if (*at_ != '"') return string_in_pieces(from, text);
  text = std::string_view(from, static_cast<std::size_t>(at_++ - from)).substr(0, kMostText);
  return true;
}

bool JsonReader::string_in_pieces(const char* from, std::string_view& text) {
  pieces_.clear();
  first_half_ = 0;
  for (;;) {
    const auto room = kMostText - std::min(pieces_.size(), kMostText);
    pieces_.append(from, std::min(static_cast<std::size_t>(at_ - from), room));
    if (at_ == end_ && !fill()) return broken("a string has no end");
    if (*at_ == '"') break;
    if (*at_ == '\\') {
      if (!escape()) return false;
    } else if (!is(*at_, CharClass::plain)) {
      return broken("a control character in a string");
    }
    from = at_;
    at_ = skip_all(at_, CharClass::plain);
  }
  ++at_;
  text = std::string_view(pieces_).substr(0, kMostText);
  return true;
}

bool JsonReader::escape() {
  ++at_;
  if (at_ == end_ && !fill()) return broken("a string has no end");
  const char c = *at_++;
  constexpr std::string_view kShort = "\"\\/bfnrt";
  constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  if (const auto found = kShort.find(c); found != std::string_view::npos) {
    if (pieces_.size() < kMostText) pieces_ += kMeant[found];
    return true;
  }
  std::uint32_t code = 0;
  if (c != 'u') return broken("an unknown escape");
  if (!hex(code)) return false;
  add_utf8(code);
  return true;
}

bool JsonReader::hex(std::uint32_t& code) {
  for (int i = 0; i < 4; ++i) {
    if (at_ == end_ && !fill()) return broken("a string has no end");
    const char c = *at_++;
    const char lower = static_cast<char>(c | 0x20);
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (lower < 'a' || lower > 'f')) return broken("\\u needs four hexadecimal digits");
    code = code << 4U | static_cast<std::uint32_t>(digit ? c - '0' : lower - 'a' + 10);
  }
  return true;
}

/// Appends a code point. The second half of a surrogate pair replaces the first half at the end.
void JsonReader::add_utf8(std::uint32_t code) {
  const auto add = [this](std::uint32_t byte) { pieces_ += static_cast<char>(byte); };
  const auto tail = [&add, &code](unsigned shift) { add(0x80U | (code >> shift & 0x3fU)); };
  if (pieces_.size() >= kMostText) return;
  if (code >= 0xd800 && code < 0xdc00) {
    first_half_ = code;
    return;
  }
  if (code >= 0xdc00 && code < 0xe000) {
    code = first_half_ == 0 ? kReplacement
                            : 0x10000 + ((first_half_ & 0x3ffU) << 10U) + (code & 0x3ffU);
  }
  first_half_ = 0;
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0U | code >> 6U);
    return tail(0);
  }
  if (code < 0x10000) {
    add(0xe0U | code >> 12U);
    tail(6);
    return tail(0);
  }
  add(0xf0U | code >> 18U);
  tail(12);
  tail(6);
  tail(0);
}

bool JsonReader::word(std::string_view& text) {
  const auto* const from = at_;
  const auto in_word = [this] { return is(*at_, CharClass::number) || is(*at_, CharClass::name); };
  at_ = skip_all(at_, CharClass::number);
  if (at_ != end_ && !in_word() && is(from[*from == '-' ? 1 : 0], CharClass::digit)) {
    text = {from, static_cast<std::size_t>(at_ - from)};
    return true;
  }
  while (in_word()) ++at_;
  text = {from, static_cast<std::size_t>(at_ - from)};
  if (at_ == end_) {
    pieces_ = text;
    while (at_ == end_ && fill()) {
      for (; in_word(); ++at_) {
        if (pieces_.size() < kMostText) pieces_ += *at_;
      }
    }
    text = pieces_;
  }
  return is_word(text) || broken("no value");
}

}  // namespace horo::timeline
