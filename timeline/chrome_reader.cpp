// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome_reader.hpp"

#include <charconv>

namespace horo::timeline {

namespace {

constexpr std::size_t kMostArguments = 24;

enum class Field { phase, name, category, pid, tid, time, duration, arguments, other };

Field field_of(std::string_view key) {
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

/// 0 where it is none.
double number_of(std::string_view text) {
  constexpr std::size_t kMostDigits = 15;  // That a double holds.
  if (text.size() <= kMostDigits) {
    std::int64_t whole = 0;
    const auto* const end = std::from_chars(text.data(), text.data() + text.size(), whole).ptr;
    if (end == text.data() + text.size()) return static_cast<double>(whole);
  }
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Events are the objects of the outermost array, or of the array "traceEvents" of the outermost
/// object.
class TraceReader {
 public:
  TraceReader(const ByteSource& source, const std::function<void(const ChromeEvent&)>& use)
      : json_(source), use_(use) {}

  bool read() {
    if (json_.peek() == '[') return events();
    return json_.object([this](std::string_view key) {
      const char c = json_.peek();
      if (key == "traceEvents" && c == '[') return events();
      if (key == "distributedInfo" && c == '{') return distributed();
      return json_.skip();
    });
  }

  JsonReader& json() { return json_; }

  ChromeOutcome& outcome() { return outcome_; }

 private:
  bool events() {
    return json_.array([this] { return json_.peek() == '{' ? event() : json_.skip(); });
  }

  bool event() {
    event_.phase = '\0';
    event_.name.clear();
    event_.category.clear();
    event_.pid.clear();
    event_.tid.clear();
    event_.ts_us = event_.duration_us = 0;
    event_.arguments.clear();
    if (!json_.object([this](std::string_view key) { return member(field_of(key)); })) return false;
    if (event_.phase == '\0') return true;
    ++outcome_.events;
    use_(event_);
    return true;
  }

  bool member(Field field) {
    const char c = json_.peek();
    if (field == Field::arguments && c == '{') return arguments();
    if (field == Field::other || c == '{' || c == '[') return json_.skip();
    std::string_view text;
    if (!json_.scalar(text)) return false;
    switch (field) {
      case Field::phase:
        event_.phase = text.empty() ? '\0' : text.front();
        break;
      case Field::name:
        event_.name = text;
        break;
      case Field::category:
        event_.category = text;
        break;
      case Field::pid:
        event_.pid = text;
        break;
      case Field::tid:
        event_.tid = text;
        break;
      case Field::time:
        event_.ts_us = number_of(text);
        break;
      case Field::duration:
        event_.duration_us = number_of(text);
        break;
      case Field::arguments:
      case Field::other:
        break;
    }
    return true;
  }

  bool arguments() {
    return json_.object([this](std::string_view key) {
      const char c = json_.peek();
      if (c == '{' || c == '[' || event_.arguments.size() == kMostArguments) return json_.skip();
      auto& argument = event_.arguments.emplace_back(key, std::string());
      std::string_view text;
      if (!json_.scalar(text)) return false;
      argument.second = text;
      return true;
    });
  }

  bool distributed() {
    return json_.object([this](std::string_view key) {
      const char c = json_.peek();
      if (key != "rank" || c == '{' || c == '[') return json_.skip();
      std::string_view text;
      if (!json_.scalar(text)) return false;
      std::from_chars(text.data(), text.data() + text.size(), outcome_.rank);
      return true;
    });
  }

  JsonReader json_;
  const std::function<void(const ChromeEvent&)>& use_;
  ChromeOutcome outcome_;
  ChromeEvent event_;
};

}  // namespace

std::string_view ChromeEvent::argument(std::string_view key) const {
  for (const auto& [known, value] : arguments) {
    if (known == key) return value;
  }
  return {};
}

Result<ChromeOutcome> read_chrome(const ByteSource& source,
                                  const std::function<void(const ChromeEvent&)>& use) {
  TraceReader reader(source, use);
  const bool whole = reader.read();
  auto& json = reader.json();
  auto& outcome = reader.outcome();
  if (!json.status()) return Failure(Error(json.status().error()));
  if (whole) {
    if (outcome.events == 0) outcome.missing = "it has no events";
    return std::move(outcome);
  }
  const bool cut = json.at_end();
  if (outcome.events == 0 && !cut) {
    return fail(Errc::protocol, "no trace in JSON: byte {}: {}", json.offset(), json.problem());
  }
  outcome.missing =
      cut ? fmt::format("it ends within the array at byte {}; the {} events before are used",
                        json.offset(), outcome.events)
          : fmt::format("damaged at byte {} ({}); the {} events before are used", json.offset(),
                        json.problem(), outcome.events);
  return std::move(outcome);
}

}  // namespace horo::timeline
