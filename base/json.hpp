// SPDX-License-Identifier: Apache-2.0
// Writes JSON text. Our tools only write it; what they read is YAML or binary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace horo {

/// Length of the UTF-8 sequence that begins at `at`; 0: none does.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so that the
/// result is valid whatever a program printed.
std::string json_quote(std::string_view text);

/// One document, written in order: `JsonWriter w;
/// w.begin_object().key("np").value(2).end_object();` Indented by two blanks, one member per line.
/// Thread: owner.
class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);

  JsonWriter& value(const char* text) { return value(std::string_view(text)); }

  JsonWriter& value(bool flag);

  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }

  JsonWriter& value(std::int64_t number);
  /// A number that is not finite is written as null.
  JsonWriter& value(double number);
  JsonWriter& null();

  /// The text so far.
  const std::string& text() const { return text_; }

 private:
  void before_value();
  void open(char bracket);
  void close(char bracket);
  void new_line();

  std::string text_;
  std::vector<bool> has_members_;  // One per open bracket.
  bool after_key_ = false;
};

}  // namespace horo
