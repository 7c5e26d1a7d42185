// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/memory/stored_result.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/json.hpp"

namespace horo::runtime::tuning {

namespace {

constexpr std::size_t kFields = 12;

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const auto tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

/// Reads fields one after the other, and remembers the first that is damaged.
class Fields {
 public:
  explicit Fields(std::vector<std::string_view> fields) : fields_(std::move(fields)) {}

  std::string text() { return std::string(fields_[at_++]); }

  template <typename Number>
  Number number() {
    const auto field = fields_[at_++];
    Number value{};
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if ((error != std::errc{} || end != field.data() + field.size()) && damaged_ == 0)
      damaged_ = at_;
    return value;
  }

  double finite() {
    const auto value = number<double>();
    if (!std::isfinite(value) && damaged_ == 0) damaged_ = at_;
    return value;
  }

  /// The number of the first damaged field, from 1 up; 0: there is none.
  std::size_t damaged() const { return damaged_; }

 private:
  std::vector<std::string_view> fields_;
  std::size_t at_ = 0;
  std::size_t damaged_ = 0;
};

}  // namespace

std::string kept_text(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

std::string to_line(const StoredResult& result) {
  return fmt::format(
      "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", kept_text(result.key.topology),
      kept_text(result.key.tensors), result.tuning.fusion_threshold, result.tuning.cycle_ns,
      result.tuning.wake_delay_ns, result.beats_default ? 1 : 0, result.gain, result.gain_error,
      result.default_score, result.samples, result.time, result.tuning.small_message);
}

Result<StoredResult> from_line(std::string_view line) {
  auto split_line = split(line);
  // Version 1 had no small message.
  const bool first = split_line.size() == kFields - 1;
  if (split_line.size() != kFields && !first) {
    return fail(Errc::protocol, "a result has {} values instead of {}", split_line.size(), kFields);
  }
  Fields fields(std::move(split_line));
  StoredResult result;
  result.key.topology = fields.text();
  result.key.tensors = fields.text();
  result.tuning.fusion_threshold = fields.number<std::uint64_t>();
  result.tuning.cycle_ns = fields.number<std::uint64_t>();
  result.tuning.wake_delay_ns = fields.number<std::uint64_t>();
  result.beats_default = fields.number<unsigned>() != 0;
  result.gain = fields.finite();
  result.gain_error = fields.finite();
  result.default_score = fields.finite();
  result.samples = fields.number<std::uint64_t>();
  result.time = fields.number<std::int64_t>();
  if (!first) result.tuning.small_message = fields.number<std::uint64_t>();
  if (fields.damaged() != 0)
    return fail(Errc::protocol, "value {} of a result is no number", fields.damaged());
  return result;
}

std::string to_json(std::span<const StoredResult> results) {
  JsonWriter json;
  json.begin_object().key("version").value(1).key("results").begin_array();
  for (const auto& one : results) {
    const auto number = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
    json.begin_object();
    json.key("topology").value(one.key.topology).key("tensors").value(one.key.tensors);
    json.key("fusion_threshold_bytes").value(number(one.tuning.fusion_threshold));
    json.key("cycle_time_ns").value(number(one.tuning.cycle_ns));
    json.key("wake_delay_ns").value(number(one.tuning.wake_delay_ns));
    json.key("small_message_bytes").value(number(one.tuning.small_message));
    json.key("beats_default").value(one.beats_default);
    json.key("gain").value(one.gain).key("gain_error").value(one.gain_error);
    json.key("default_bytes_per_second").value(one.default_score);
    json.key("samples").value(number(one.samples)).key("time").value(one.time);
    json.end_object();
  }
  json.end_array().end_object();
  return json.text();
}

}  // namespace horo::runtime::tuning
