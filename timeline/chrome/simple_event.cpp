// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome/simple_event.hpp"

#include "timeline/chrome/chrome_fields.hpp"
#include "timeline/chrome/json_characters.hpp"
#include "timeline/chrome/json_reader.hpp"

namespace horo::timeline {

namespace {

std::string_view between(const char* from, const char* to) {
  return {from, static_cast<std::size_t>(to - from)};
}

class SimpleEventReader {
 public:
  explicit SimpleEventReader(const char* at) : at_(at) {}

  const char* at() const { return at_; }

  bool event(ChromeEvent& event) {
    return object([&](std::string_view key) {
      const auto field = field_of(key);
      if (field == Field::arguments && *at_ == '{') return arguments(event);
      std::string_view text;
      if (!scalar(text)) return false;
      set_field(event, field, text);
      return true;
    });
  }

 private:
  bool arguments(ChromeEvent& event) {
    return object([&](std::string_view key) {
      if (event.arguments.size() == kMostArguments) return false;
      auto& argument = event.arguments.emplace_back(key, std::string_view());
      return scalar(argument.second);
    });
  }

  template <typename Use>
  bool object(Use use) {
    if (!take('{')) return false;
    for (;;) {
      std::string_view key;
      if (*at_ != '"' || !string(key) || !take(':') || !use(key)) return false;
      spaces();
      if (*at_ == '}') break;
      if (!take(',')) return false;
    }
    ++at_;
    return true;
  }

  void spaces() { at_ = skip_all(at_, CharClass::space); }

  /// Takes `c` and the spaces around it.
  bool take(char c) {
    spaces();
    if (*at_ != c) return false;
    ++at_;
    spaces();
    return true;
  }

  bool string(std::string_view& text) {
    const auto* const from = ++at_;
    at_ = skip_all(at_, CharClass::plain);
    text = between(from, at_);
    return *at_++ == '"' && text.size() <= JsonReader::kMostText;
  }

  /// Takes a string or a number. The caller checks what follows a number.
  bool scalar(std::string_view& text) {
    if (*at_ == '"') return string(text);
    const auto* const from = at_;
    at_ = skip_all(at_, CharClass::number);
    text = between(from, at_);
    return is(from[*from == '-' ? 1 : 0], CharClass::digit);
  }

  const char* at_;
};

}  // namespace

const char* read_simple_event(const char* from, ChromeEvent& event) {
  SimpleEventReader quick(from);
  return quick.event(event) ? quick.at() : nullptr;
}

}  // namespace horo::timeline
