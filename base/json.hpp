// SPDX-License-Identifier: Apache-2.0
// Writes JSON text. Our tools read YAML and binary files, so there is no JSON reader here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace horo {

/// Length of the UTF-8 sequence that begins at `at`; 0 if none begins there.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// `text` as a JSON string with quotes. Bytes that are not UTF-8 become U+FFFD, so the result is
/// always valid.
std::string json_quote(std::string_view text);

/// Writes one document in order: `JsonWriter w; w.begin_object().key("np").value(2).end_object();`
/// The text is indented by two blanks, with one member per line. Thread: owner.
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
