// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/value.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

namespace horo {

namespace {

struct Suffix {
  std::string_view word;
  double factor;
};

// Largest first: formatting uses the first unit that divides the value.
constexpr std::array<Suffix, 5> kSizes{{{"TiB", 1099511627776.0},
                                        {"GiB", 1073741824.0},
                                        {"MiB", 1048576.0},
                                        {"KiB", 1024.0},
                                        {"B", 1.0}}};
constexpr std::array<Suffix, 10> kSizesElse{{{"TB", 1099511627776.0},
                                             {"GB", 1073741824.0},
                                             {"MB", 1048576.0},
                                             {"KB", 1024.0},
                                             {"T", 1099511627776.0},
                                             {"G", 1073741824.0},
                                             {"M", 1048576.0},
                                             {"K", 1024.0},
                                             {"bytes", 1.0},
                                             {"byte", 1.0}}};
constexpr std::array<Suffix, 6> kTimes{
    {{"h", 3600e9}, {"min", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1.0}}};

bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) !=
        std::tolower(static_cast<unsigned char>(b[i]))) {
      return false;
    }
  }
  return true;
}

template <std::size_t N>
double factor_of(const std::array<Suffix, N>& suffixes, std::string_view word) {
  for (const auto& suffix : suffixes) {
    if (same_word(suffix.word, word)) return suffix.factor;
  }
  return 0;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return text;
}

/// A number and the unit behind it.
struct Measured {
  double number = 0;
  std::string_view suffix;
};

std::optional<Measured> measure(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || !std::isfinite(number)) return std::nullopt;
  return Measured{number, trim({rest, static_cast<std::size_t>(end - rest)})};
}

std::optional<bool> parse_boolean(std::string_view text) {
  for (const auto* word : {"1", "true", "yes", "on"}) {
    if (same_word(text, word)) return true;
  }
  for (const auto* word : {"0", "false", "no", "off"}) {
    if (same_word(text, word)) return false;
  }
  return std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

/// Bytes or nanoseconds; nothing if the text or its unit is invalid.
std::optional<std::int64_t> parse_measure(const KnobRow& row, const Spelling& spelling,
                                          std::string_view text) {
  const auto measured = measure(text);
  if (!measured) return std::nullopt;
  const bool bytes = row.kind == KnobKind::bytes;
  double factor = 0;
  if (measured->suffix.empty()) {
    factor = spelling.scale * (bytes ? 1.0 : factor_of(kTimes, row.text->unit));
  } else if (bytes) {
    factor = factor_of(kSizes, measured->suffix);
    if (factor == 0) factor = factor_of(kSizesElse, measured->suffix);
  } else {
    factor = factor_of(kTimes, measured->suffix);
  }
  const double value = std::round(measured->number * factor);
  // Above 2^53 a double cannot represent every whole number. No bound of the table is that large.
  if (factor == 0 || std::abs(value) > 9007199254740992.0) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> parse_choice(const KnobText& row, std::string_view text) {
  for (std::size_t i = 0; i < row.choices.size() && !row.choices[i].empty(); ++i) {
    if (same_word(row.choices[i], text)) return static_cast<std::int64_t>(i);
  }
  return std::nullopt;
}

KnobValue lifted(const KnobRow& row, const Spelling& spelling, KnobValue value) {
  if (!spelling.only_raises) return value;
  const auto fallback = to_value(row.fallback);
  return value < fallback ? fallback : value;
}

std::optional<KnobValue> parse(const KnobRow& row, const Spelling& spelling,
                               std::string_view text) {
  switch (row.kind) {
    case KnobKind::boolean: {
      auto value = parse_boolean(text);
      // Horovod takes every number above 0 for true.
      if (const auto number = parse_integer(text); !value && number && !spelling.name.empty())
        value = *number > 0;
      if (!value) return std::nullopt;
      return KnobValue{std::int64_t{*value != spelling.inverted ? 1 : 0}};
    }
    case KnobKind::integer:
      if (const auto value = parse_integer(text)) return KnobValue{*value};
      return std::nullopt;
    case KnobKind::real: {
      const auto measured = measure(text);
      if (!measured || !measured->suffix.empty()) return std::nullopt;
      return KnobValue{measured->number};
    }
    case KnobKind::bytes:
    case KnobKind::duration:
      if (const auto value = parse_measure(row, spelling, text)) return KnobValue{*value};
      return std::nullopt;
    case KnobKind::choice:
      if (const auto value = parse_choice(*row.text, text)) return KnobValue{*value};
      return std::nullopt;
    case KnobKind::text:
      if (row.text->has_form != nullptr && !row.text->has_form(text)) return std::nullopt;
      return KnobValue{std::string(text)};
  }
  return std::nullopt;
}

template <std::size_t N>
std::string with_unit(const std::array<Suffix, N>& suffixes, std::int64_t value) {
  if (value == 0) return "0";
  for (const auto& suffix : suffixes) {
    const auto factor = static_cast<std::int64_t>(suffix.factor);
    if (value % factor == 0) return fmt::format("{}{}", value / factor, suffix.word);
  }
  return std::to_string(value);
}

bool has_range(const KnobRow& row) {
  return row.kind != KnobKind::boolean && row.kind != KnobKind::choice &&
         row.kind != KnobKind::text;
}

std::string_view noun(KnobKind kind) {
  switch (kind) {
    case KnobKind::boolean:
      return "true or false";
    case KnobKind::integer:
      return "a whole number";
    case KnobKind::real:
      return "a number";
    case KnobKind::bytes:
      return "a size (64MiB, 64M or bytes)";
    case KnobKind::duration:
      return "a time";
    case KnobKind::text:
      return "text";
    case KnobKind::choice:
      return "one of";
  }
  return "a value";
}

}  // namespace

KnobValue to_value(const KnobConstant& constant) {
  if (const auto* number = std::get_if<std::int64_t>(&constant)) return *number;
  if (const auto* real = std::get_if<double>(&constant)) return *real;
  if (const auto* text = std::get_if<std::string_view>(&constant)) return std::string(*text);
  return std::monostate{};
}

Result<KnobValue> parse_knob(const KnobRow& row, const Spelling& spelling, std::string_view text) {
  if (row.kind != KnobKind::text) text = trim(text);
  if (!row.text->none.empty() && same_word(text, row.text->none)) return KnobValue{};
  auto value = parse(row, spelling, text);
  if (!value) return fail(Errc::invalid_argument, "{}", allowed(row));
  if (*value == KnobValue{std::int64_t{0}}) {
    if (row.text->zero_is_none) return KnobValue{};
    if (row.text->zero_is_default) return to_value(row.fallback);
  }
  auto result = lifted(row, spelling, std::move(*value));
  if (has_range(row) && (result < to_value(row.least) || to_value(row.most) < result)) {
    return fail(Errc::invalid_argument, "{}", allowed(row));
  }
  return result;
}

bool is_above_range(const KnobRow& row, const Spelling& spelling, std::string_view text) {
  if (!has_range(row)) return false;
  const auto value = parse(row, spelling, trim(text));
  return value && to_value(row.most) < *value;
}

std::string format_knob(const KnobRow& row, const KnobValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return std::string(row.text->none);
  switch (row.kind) {
    case KnobKind::boolean:
      return std::get<std::int64_t>(value) != 0 ? "true" : "false";
    case KnobKind::integer:
      return std::to_string(std::get<std::int64_t>(value));
    case KnobKind::real:
      return fmt::format("{}", std::get<double>(value));
    case KnobKind::bytes:
      return with_unit(kSizes, std::get<std::int64_t>(value));
    case KnobKind::duration:
      return with_unit(kTimes, std::get<std::int64_t>(value));
    case KnobKind::choice:
      return std::string(
          row.text->choices.at(static_cast<std::size_t>(std::get<std::int64_t>(value))));
    case KnobKind::text:
      return std::get<std::string>(value);
  }
  return {};
}

std::string format_for(const KnobRow& row, const Spelling& spelling, const KnobValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return row.text->zero_is_none ? "0" : "";
  switch (row.kind) {
    case KnobKind::boolean:
      return (std::get<std::int64_t>(value) != 0) != spelling.inverted ? "1" : "0";
    case KnobKind::bytes:
      return fmt::format("{}", static_cast<double>(std::get<std::int64_t>(value)) / spelling.scale);
    case KnobKind::duration:
      return fmt::format("{}", static_cast<double>(std::get<std::int64_t>(value)) /
                                   factor_of(kTimes, row.text->unit) / spelling.scale);
    case KnobKind::choice: {
      auto word = format_knob(row, value);
      for (auto& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      return word;
    }
    case KnobKind::integer:
    case KnobKind::real:
    case KnobKind::text:
      return format_knob(row, value);
  }
  return {};
}

std::string allowed(const KnobRow& row) {
  std::string text(row.text->form.empty() ? noun(row.kind) : row.text->form);
  if (row.kind == KnobKind::choice) {
    for (std::size_t i = 0; i < row.text->choices.size() && !row.text->choices[i].empty(); ++i) {
      text += fmt::format("{}{}", i == 0 ? ": " : ", ", row.text->choices[i]);
    }
  }
  if (row.kind == KnobKind::duration)
    text += fmt::format(" (1ms, 2s or a number of {})", row.text->unit);
  if (has_range(row)) {
    text += fmt::format(" from {} to {}", format_knob(row, to_value(row.least)),
                        format_knob(row, to_value(row.most)));
  }
  if (!row.text->none.empty()) text += fmt::format(", or '{}'", row.text->none);
  return text;
}

std::string format_fallback(const KnobRow& row) {
  return format_knob(row, to_value(row.fallback));
}

}  // namespace horo
