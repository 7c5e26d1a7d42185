// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/settings.hpp"

#include <utility>

#include "base/knobs/nearest.hpp"
#include "base/knobs/value.hpp"

namespace horo {

std::string_view name(OriginKind kind) {
  switch (kind) {
    case OriginKind::fallback:
      return "default";
    case OriginKind::config:
      return "config";
    case OriginKind::environment:
      return "environment";
    case OriginKind::flag:
      return "flag";
  }
  return "unknown";
}

std::string Origin::text() const {
  return name.empty() ? std::string(horo::name(kind))
                      : fmt::format("{} {}", horo::name(kind), name);
}

Settings::Settings() {
  entries_.reserve(knob_rows().size());
  for (const auto& row : knob_rows()) entries_.push_back({to_value(row.fallback), {}});
}

const Settings::Entry& Settings::at(std::string_view key) const {
  const int index = knob_index(key);
  HORO_CHECK(index >= 0);
  return entries_[static_cast<std::size_t>(index)];
}

Status Settings::assign(const KnobMatch& match, std::string_view text, Origin origin) {
  const auto index = static_cast<std::size_t>(match.index);
  const KnobRow& row = knob_rows()[index];
  // Horovod has no upper limits.
  const bool lowered = !match.spelling.name.empty() && is_above_range(row, match.spelling, text);
  auto value =
      lowered ? Result<KnobValue>(to_value(row.most)) : parse_knob(row, match.spelling, text);
  if (!value) {
    return fail(Errc::invalid_argument, "{}: '{}' ({}) must be {}", row.text->key, text,
                origin.text(), value.error().message);
  }
  std::erase_if(warnings_, [&](const auto& warning) { return warning.subject == row.text->key; });
  if (lowered) {
    warnings_.push_back(
        {std::string(row.text->key),
         fmt::format("{}: '{}' ({}) is above the largest value, {}, which is used", row.text->key,
                     text, origin.text(), format_knob(row, *value))});
  }
  entries_[index] = {std::move(value).value(), std::move(origin)};
  return {};
}

Status Settings::apply_config(const Sources& sources) {
  for (const auto& given : sources.config) {
    const auto match = match_config(given.name);
    if (match.index >= 0) {
      HORO_TRY_STATUS(assign(match, given.value, {OriginKind::config, given.place}));
      continue;
    }
    std::vector<std::string_view> keys;
    for (const auto& row : knob_rows()) {
      keys.push_back(row.text->key);
      if (!row.text->config.name.empty()) keys.push_back(row.text->config.name);
    }
    const auto hint = did_you_mean(given.name, keys);
    if (!sources.like_horovodrun)
      return fail(Errc::invalid_argument, "{}: unknown key '{}'{}", given.place, given.name, hint);
    warnings_.push_back({{},
                         fmt::format("{}: the key '{}' is unknown and has no effect{}", given.place,
                                     given.name, hint)});
  }
  return {};
}

Status Settings::apply_environment(const Sources& sources) {
  const auto& lookup = sources.environment;
  if (!lookup) return {};
  const auto rows = knob_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int index = static_cast<int>(i);
    const auto ours = variable_name(rows[i].text->key);
    const Spelling& theirs = rows[i].text->variable;
    // An empty variable counts as unset, because that is how a shell removes one.
    if (const char* text = lookup(ours.c_str()); text != nullptr && *text != '\0') {
      HORO_TRY_STATUS(assign({index, {}}, text, {OriginKind::environment, ours}));
    } else if (!theirs.name.empty()) {
      const std::string variable(theirs.name);
      text = lookup(variable.c_str());
      if (text == nullptr || *text == '\0') continue;
      HORO_TRY_STATUS(assign({index, theirs}, text, {OriginKind::environment, variable}));
    }
  }
  return {};
}

Status Settings::apply_flags(const Sources& sources) {
  for (const auto& given : sources.flags) {
    auto match = match_flag(given.name);
    if (match.index < 0) return fail(Errc::invalid_argument, "unknown option --{}", given.name);
    // Some options of horovodrun have the name that follows from the key.
    if (sources.like_horovodrun && match.spelling.name.empty()) {
      const auto& text = *knob_rows()[static_cast<std::size_t>(match.index)].text;
      match.spelling.name = text.key;
      match.spelling.only_raises = text.variable.only_raises;
    }
    HORO_TRY_STATUS(assign(match, given.value, {OriginKind::flag, "--" + given.name}));
  }
  return {};
}

Result<Settings> Settings::resolve(const Sources& sources) {
  Settings settings;
  if (sources.like_horovodrun) {
    HORO_TRY_STATUS(settings.apply_environment(sources));
    HORO_TRY_STATUS(settings.apply_config(sources));
  } else {
    HORO_TRY_STATUS(settings.apply_config(sources));
    HORO_TRY_STATUS(settings.apply_environment(sources));
  }
  HORO_TRY_STATUS(settings.apply_flags(sources));
  return settings;
}

Result<Settings> Settings::from_environment(std::function<const char*(const char*)> lookup) {
  return resolve({.environment = std::move(lookup)});
}

std::vector<KnobWarning> Settings::warnings() const {
  auto warnings = warnings_;
  const auto rows = knob_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const KnobText& text = *rows[i].text;
    const auto& [value, origin] = entries_[i];
    if (text.inert.empty() || origin.kind == OriginKind::fallback) continue;
    // A switch that is set to what happens anyway asks for nothing.
    if (rows[i].kind == KnobKind::boolean && value == to_value(rows[i].fallback)) continue;
    warnings.push_back({std::string(text.key), fmt::format("{} ({}) has no effect: {}", text.key,
                                                           origin.text(), text.inert)});
  }
  return warnings;
}

std::vector<Settings::Explained> Settings::explain() const {
  std::vector<Explained> all;
  const auto rows = knob_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    all.push_back({rows[i].text->key, format_knob(rows[i], entries_[i].value), entries_[i].origin});
  }
  return all;
}

Environment Settings::exported() const {
  Environment environment;
  const auto rows = knob_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const KnobText& text = *rows[i].text;
    if (text.reader != KnobReader::ranks || entries_[i].origin.kind == OriginKind::fallback)
      continue;
    environment.emplace_back(variable_name(text.key), format_knob(rows[i], entries_[i].value));
    if (text.variable.name.empty()) continue;
    environment.emplace_back(text.variable.name,
                             format_for(rows[i], text.variable, entries_[i].value));
  }
  return environment;
}

}  // namespace horo
