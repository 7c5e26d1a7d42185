// SPDX-License-Identifier: Apache-2.0
// The members of a Chrome trace event, for both readers of events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "timeline/chrome/chrome_reader.hpp"

namespace horo::timeline {

inline constexpr std::size_t kMostArguments = 24;

enum class Field : std::uint8_t {
  phase,
  name,
  category,
  pid,
  tid,
  time,
  duration,
  arguments,
  other
};

inline Field field_of(std::string_view key) {
  switch (key.size()) {
    case 2:
      return key == "ph" ? Field::phase : key == "ts" ? Field::time : Field::other;
    case 3:
      return key == "pid"   ? Field::pid
             : key == "tid" ? Field::tid
             : key == "cat" ? Field::category
             : key == "dur" ? Field::duration
                            : Field::other;
    case 4:
      return key == "name" ? Field::name : key == "args" ? Field::arguments : Field::other;
    default:
      return Field::other;
  }
}

/// 0 where `text` is not a number.
double number_of(std::string_view text);

/// Sets a scalar member. `text` must outlive the event. Arguments and unknown members are ignored.
inline void set_field(ChromeEvent& event, Field field, std::string_view text) {
  switch (field) {
    case Field::phase:
      event.phase = text.empty() ? '\0' : text.front();
      break;
    case Field::name:
      event.name = text;
      break;
    case Field::category:
      event.category = text;
      break;
    case Field::pid:
      event.pid = text;
      break;
    case Field::tid:
      event.tid = text;
      break;
    case Field::time:
      event.ts_us = number_of(text);
      break;
    case Field::duration:
      event.duration_us = number_of(text);
      break;
    case Field::arguments:
    case Field::other:
      break;
  }
}

}  // namespace horo::timeline
