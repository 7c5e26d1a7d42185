// SPDX-License-Identifier: Apache-2.0
#include "apps/common/explain.hpp"

#include <algorithm>

#include "base/json.hpp"

namespace horo::apps {

namespace {

std::string shown(const Settings::Explained& knob) {
  return knob.value.empty() ? "''" : knob.value;
}

}  // namespace

std::string explain_text(const Settings& settings) {
  const auto all = settings.explain();
  std::size_t key_width = 0;
  std::size_t value_width = 0;
  for (const auto& knob : all) {
    key_width = std::max(key_width, knob.key.size());
    value_width = std::max(value_width, shown(knob).size());
  }
  std::string text;
  for (const auto& knob : all) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", knob.key, key_width, shown(knob), value_width,
                        knob.origin.text());
  }
  return text;
}

std::string explain_json(const Settings& settings) {
  JsonWriter writer;
  writer.begin_object().key("knobs").begin_array();
  for (const auto& knob : settings.explain()) {
    writer.begin_object();
    writer.key("key").value(knob.key);
    writer.key("value").value(knob.value);
    writer.key("origin").value(name(knob.origin.kind));
    writer.key("from");
    if (knob.origin.name.empty()) {
      writer.null();
    } else {
      writer.value(knob.origin.name);
    }
    writer.end_object();
  }
  writer.end_array().end_object();
  return writer.text() + "\n";
}

}  // namespace horo::apps
