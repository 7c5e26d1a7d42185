// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/tag.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace horo::launcher {

Result<TagFormat::Field> TagFormat::field_named(std::string_view name, std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Field>, 7> kFields{{
      {"rank", Field::rank},
      {"local_rank", Field::local_rank},
      {"size", Field::size},
      {"host", Field::host},
      {"stream", Field::stream},
      {"job", Field::job},
      {"time", Field::time},
  }};
  for (const auto& [known, field] : kFields) {
    if (name == known) return field;
  }
  return fail(Errc::invalid_argument,
              "prefix '{}' has an unknown field {{{}}}; known are {{rank}} {{local_rank}} {{size}} "
              "{{host}} "
              "{{stream}} {{job}} {{time}}",
              text, name);
}

Result<TagFormat> TagFormat::parse(std::string_view text) {
  TagFormat format;
  std::string literal;
  const auto end_literal = [&] {
    if (!literal.empty()) format.parts_.push_back({Field::literal, std::move(literal)});
    literal.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      literal += c;
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == c) {
      literal += c;
      ++i;
      continue;
    }
    const auto close = text.find('}', i);
    if (c == '}' || close == std::string_view::npos) {
      return fail(Errc::invalid_argument,
                  "prefix '{}' has a single '{}'; write it twice for the character itself", text,
                  c);
    }
    HORO_TRY(const auto field, field_named(text.substr(i + 1, close - i - 1), text));
    end_literal();
    format.parts_.push_back({field, {}});
    format.timed_ = format.timed_ || field == Field::time;
    i = close;
  }
  end_literal();
  return format;
}

std::string TagFormat::render(const TagFields& fields, std::string_view time) const {
  std::string text;
  for (const auto& part : parts_) {
    switch (part.field) {
      case Field::literal:
        text += part.text;
        break;
      case Field::rank:
        text += fields.ranks.empty() ? std::to_string(fields.rank.value()) : fields.ranks;
        break;
      case Field::local_rank:
        text += std::to_string(fields.local_rank.value());
        break;
      case Field::size:
        text += std::to_string(fields.size);
        break;
      case Field::host:
        text += fields.host;
        break;
      case Field::stream:
        text += fields.stream == Stream::out ? "stdout" : "stderr";
        break;
      case Field::job:
        text += fields.job;
        break;
      case Field::time:
        text += time;
        break;
    }
  }
  return text;
}

bool TagFormat::names_rank() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return part.field == Field::rank; });
}

std::string list_ranks(const std::vector<Rank>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto first = ranks[i];
    while (i + 1 < ranks.size() && ranks[i + 1].value() == ranks[i].value() + 1) ++i;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (ranks[i] != first) text += fmt::format("-{}", ranks[i]);
  }
  return text;
}

Result<std::vector<bool>> parse_ranks(std::string_view text, int size) {
  std::vector<bool> flags(static_cast<std::size_t>(size));
  const auto wrong = [&](std::string_view part) {
    return fail(Errc::invalid_argument,
                "'{}' in the list of ranks '{}' is not a rank in 0-{}; write 0,3-5", part, text,
                size - 1);
  };
  for (std::size_t at = 0; at <= text.size();) {
    const auto part = text.substr(at, text.find(',', at) - at);
    at += part.size() + 1;
    int first = 0;
    const char* const end = part.data() + part.size();
    auto [next, error] = std::from_chars(part.data(), end, first);
    int last = first;
    if (error == std::errc() && next != end && *next == '-') {
      const auto read = std::from_chars(next + 1, end, last);
      next = read.ptr;
      error = read.ec;
    }
    if (error != std::errc() || next != end || first < 0 || last < first || last >= size)
      return wrong(part);
    for (int rank = first; rank <= last; ++rank) flags[static_cast<std::size_t>(rank)] = true;
  }
  return flags;
}

std::string colour_of(Rank rank) {
  // Colours that are readable on black and on white. Red is left out, because it means an error.
  constexpr std::array kColours{36, 33, 35, 32, 34, 96, 95, 92, 94, 93};
  return fmt::format("\x1b[{}m", kColours[rank.index() % kColours.size()]);
}

}  // namespace horo::launcher
