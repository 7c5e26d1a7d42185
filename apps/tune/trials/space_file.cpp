// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/space_file.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/knobs/nearest.hpp"
#include "base/knobs/value.hpp"

namespace horo::apps {

namespace {

using autotune::Dimension;

template <typename Number>
std::optional<Number> whole_text_as(const std::string& text) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

/// The words of a list, with ~ as kUnsetWord.
Result<std::vector<std::string>> words_in(const DocumentPart& list, ValueTarget target) {
  if (list.kind != PartKind::list || list.items.empty())
    return list.wrong("a list of words is wanted here, like [Ring, Tree]");
  std::vector<std::string> words;
  for (const auto& item : list.items) {
    const bool unset = item.kind == PartKind::nothing;
    if (unset && target == ValueTarget::mpi_args)
      return item.wrong("write \"\" for no arguments of mpirun");
    if (unset && target == ValueTarget::knob)
      return item.wrong("a setting of Horo always has a value; write it");
    if (!unset && item.kind != PartKind::text) return item.wrong("a word is wanted here");
    words.push_back(unset ? kUnsetWord : item.text);
    if (std::count(words.begin(), words.end(), words.back()) > 1)
      return item.wrong(fmt::format("'{}' is listed twice", words.back()));
  }
  return words;
}

class SpaceReader {
 public:
  explicit SpaceReader(const std::function<const char*(const char*)>& lookup) : lookup_(lookup) {}

  Result<std::vector<TrialDimension>> read(const DocumentPart& document) {
    if (document.kind != PartKind::map)
      return document.wrong("the file must have the keys 'variables', 'knobs' or 'mpi_args'");
    for (const auto& [name, part] : document.members) {
      if (name == "variables") {
        HORO_TRY_STATUS(read_group(part, ValueTarget::variable));
      } else if (name == "knobs") {
        HORO_TRY_STATUS(read_knobs(part));
      } else if (name == "mpi_args") {
        HORO_TRY_STATUS(read_group(part, ValueTarget::mpi_args));
      } else {
        return part.wrong(fmt::format("unknown key '{}'{}", name,
                                      did_you_mean(name, {"variables", "knobs", "mpi_args"})));
      }
    }
    if (dimensions_.empty()) return document.wrong("the file names no variable to search");
    return std::move(dimensions_);
  }

 private:
  Status read_group(const DocumentPart& group, ValueTarget target) {
    if (group.kind != PartKind::map) return group.wrong("names with their values are wanted here");
    for (const auto& [name, part] : group.members) {
      if (name.starts_with("HORO_") || name.starts_with("HOROVOD_")) {
        return part.wrong(fmt::format(
            "'{}' is a setting of Horo; those that can be tuned are searched without this file, "
            "and others go under 'knobs' by their keys, like shm.chunk",
            name));
      }
      if (name.find('=') != std::string::npos)
        return part.wrong(fmt::format("'{}' is no name: it must have no '='", name));
      HORO_TRY(auto dimension, read_dimension(name, part, target));
      dimensions_.push_back(
          {.dimension = std::move(dimension), .target = target, .shown_factor = 1, .unit = ""});
    }
    return {};
  }

  /// Lists of values of Horo's own settings. The first value is the default.
  Status read_knobs(const DocumentPart& group) {
    if (group.kind != PartKind::map) return group.wrong("keys with their values are wanted here");
    for (const auto& [name, part] : group.members) {
      const int index = knob_index(name);
      if (index < 0) return part.wrong(fmt::format("'{}' is no key of a setting of Horo", name));
      HORO_TRY(auto words, words_in(part, ValueTarget::knob));
      for (auto& word : words) {
        const auto& row = knob_rows()[static_cast<std::size_t>(index)];
        const auto value = parse_knob(row, {}, word);
        if (!value) {
          return part.wrong(fmt::format("{}: '{}' must be {}", name, word, value.error().message));
        }
        word = format_knob(row, *value);
      }
      dimensions_.push_back({.dimension = {.name = name,
                                           .range = autotune::Categories{words},
                                           .fallback = words.front()},
                             .target = ValueTarget::knob});
    }
    return {};
  }

  Result<Dimension> read_dimension(const std::string& name, const DocumentPart& part,
                                   ValueTarget target) {
    Dimension dimension{.name = name, .range = {}, .fallback = {}};
    if (part.kind == PartKind::list) {
      HORO_TRY_STATUS(take_words(part, target, dimension));
      return dimension;
    }
    if (part.kind != PartKind::map)
      return part.wrong("a list of words, or {least: 1, most: 16, default: 4} is wanted here");
    HORO_TRY_STATUS(check_keys(part));
    if (const auto* words = part.find("words"); words != nullptr) {
      HORO_TRY_STATUS(take_words(*words, target, dimension));
    } else if (target == ValueTarget::mpi_args) {
      return part.wrong("arguments of mpirun are a list of texts");
    } else {
      HORO_TRY_STATUS(take_range(part, dimension));
    }
    HORO_TRY_STATUS(take_default(part, dimension));
    HORO_TRY_STATUS(take_condition(part, dimension));
    return dimension;
  }

  static Status check_keys(const DocumentPart& part) {
    const std::vector<std::string_view> known{"words", "least",   "most", "step",
                                              "scale", "default", "when"};
    for (const auto& [name, value] : part.members) {
      if (std::find(known.begin(), known.end(), name) == known.end())
        return value.wrong(fmt::format("unknown key '{}'{}", name, did_you_mean(name, known)));
    }
    return {};
  }

  /// The first word is the default, unless the environment already has one of the others.
  Status take_words(const DocumentPart& part, ValueTarget target, Dimension& dimension) {
    HORO_TRY(auto words, words_in(part, target));
    dimension.fallback = words.front();
    const char* now = target == ValueTarget::variable ? lookup_(dimension.name.c_str()) : nullptr;
    if (now != nullptr && std::find(words.begin(), words.end(), now) != words.end())
      dimension.fallback = std::string(now);
    dimension.range = autotune::Categories{std::move(words)};
    return {};
  }

  static Status take_range(const DocumentPart& part, Dimension& dimension) {
    const auto* least = part.find("least");
    const auto* most = part.find("most");
    if (least == nullptr || most == nullptr)
      return part.wrong("a range needs 'least' and 'most'; a choice needs 'words'");
    auto scale = autotune::Scale::logarithmic;
    if (const auto* written = part.find("scale"); written != nullptr) {
      if (written->text != "linear" && written->text != "logarithmic")
        return written->wrong("the scale must be linear or logarithmic");
      if (written->text == "linear") scale = autotune::Scale::linear;
    }
    const auto low = whole_text_as<std::int64_t>(least->text);
    const auto high = whole_text_as<std::int64_t>(most->text);
    if (low && high) {
      std::int64_t step = 1;
      if (const auto* written = part.find("step"); written != nullptr) {
        step = whole_text_as<std::int64_t>(written->text).value_or(0);
        if (step < 1) return written->wrong("the step must be a whole number from 1 up");
      }
      dimension.range =
          autotune::IntegerRange{.least = *low, .most = *high, .step = step, .scale = scale};
      return {};
    }
    const auto real_low = whole_text_as<double>(least->text);
    const auto real_high = whole_text_as<double>(most->text);
    if (!real_low || !real_high) return part.wrong("'least' and 'most' must be numbers");
    dimension.range = autotune::RealRange{.least = *real_low, .most = *real_high, .scale = scale};
    return {};
  }

  /// A value that the environment has comes before the file's, if it is one of the list.
  Status take_default(const DocumentPart& part, Dimension& dimension) {
    const auto* written = part.find("default");
    const char* now = lookup_(dimension.name.c_str());
    const bool is_range = !std::holds_alternative<autotune::Categories>(dimension.range);
    if (!is_range) {
      const auto& words = std::get<autotune::Categories>(dimension.range).names;
      const bool listed =
          now != nullptr && std::find(words.begin(), words.end(), now) != words.end();
      if (written != nullptr && !listed)
        dimension.fallback = written->kind == PartKind::nothing ? kUnsetWord : written->text;
      return {};
    }
    if (written == nullptr && now == nullptr) {
      return part.wrong(
          fmt::format("'{}' is not set, so its range needs a 'default'", dimension.name));
    }
    const std::string text = now != nullptr ? now : written->text;
    if (std::holds_alternative<autotune::IntegerRange>(dimension.range)) {
      const auto number = whole_text_as<std::int64_t>(text);
      if (!number) return part.wrong(fmt::format("the default '{}' is no whole number", text));
      dimension.fallback = *number;
    } else {
      const auto number = whole_text_as<double>(text);
      if (!number) return part.wrong(fmt::format("the default '{}' is no number", text));
      dimension.fallback = *number;
    }
    return {};
  }

  static Status take_condition(const DocumentPart& part, Dimension& dimension) {
    const auto* when = part.find("when");
    if (when == nullptr) return {};
    if (when->kind != PartKind::map || when->members.size() != 1 ||
        when->members.front().part.kind != PartKind::text)
      return when->wrong("a condition is one name with one word, like {NCCL_ALGO: Ring}");
    dimension.when = autotune::Condition{.dimension = when->members.front().name,
                                         .category = when->members.front().part.text};
    return {};
  }

  const std::function<const char*(const char*)>& lookup_;
  std::vector<TrialDimension> dimensions_;
};

}  // namespace

Result<std::vector<TrialDimension>> space_of_document(
    const DocumentPart& document, const std::function<const char*(const char*)>& lookup) {
  return SpaceReader(lookup).read(document);
}

}  // namespace horo::apps
