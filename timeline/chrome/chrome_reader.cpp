// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome/chrome_reader.hpp"

#include <array>
#include <charconv>
#include <utility>

#include "timeline/chrome/chrome_fields.hpp"
#include "timeline/chrome/simple_event.hpp"

namespace horo::timeline {

namespace {

/// Finds the events: the objects in the outermost array, or in the array "traceEvents" of the
/// outermost object.
class TraceReader {
 public:
  TraceReader(const ByteSource& source, const std::function<void(const ChromeEvent&)>& use)
      : json_(source), use_(use) {}

  bool read() {
    if (!json_.byte_order_mark()) return false;
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
    clear();
    if (const auto* const end = read_simple_event(json_.ahead(), event_); end != nullptr) {
      json_.pass(end);
    } else {
      clear();
      if (!json_.object([this](std::string_view key) { return member(field_of(key)); }))
        return false;
    }
    if (event_.phase == '\0') return true;
    ++outcome_.events;
    use_(event_);
    return true;
  }

  void clear() {
    auto arguments = std::move(event_.arguments);
    arguments.clear();
    event_ = {.rank = outcome_.rank, .arguments = std::move(arguments)};
  }

  bool member(Field field) {
    const char c = json_.peek();
    if (field == Field::arguments && c == '{') return arguments();
    if (field == Field::other || c == '{' || c == '[') return json_.skip();
    std::string_view text;
    if (!json_.scalar(text)) return false;
    set_field(event_, field, kept_.at(static_cast<std::size_t>(field)) = text);
    return true;
  }

  bool arguments() {
    return json_.object([this](std::string_view key) {
      const char c = json_.peek();
      const auto count = event_.arguments.size();
      if (c == '{' || c == '[' || count == kMostArguments) return json_.skip();
      auto& kept = kept_arguments_.at(count);
      auto& argument = event_.arguments.emplace_back(kept.first = key, std::string_view());
      std::string_view text;
      if (!json_.scalar(text)) return false;
      argument.second = kept.second = text;
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
  /// Holds the texts of an event that JsonReader read.
  std::array<std::string, static_cast<std::size_t>(Field::other)> kept_;
  std::array<std::pair<std::string, std::string>, kMostArguments> kept_arguments_;
};

}  // namespace

double number_of(std::string_view text) {
  constexpr std::size_t kMostDigits = 15;  // A double holds any integer of so many digits.
  if (text.size() <= kMostDigits) {
    std::int64_t whole = 0;
    std::size_t i = 0;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
      whole = whole * 10 + (text[i] - '0');
    if (i == text.size()) return static_cast<double>(whole);
  }
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

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
    const bool more = json.peek() != '\0' || !json.at_end();
    if (!json.status()) return Failure(Error(json.status().error()));
    if (outcome.events == 0) {
      outcome.missing = "it has no events";
    } else if (more) {
      outcome.missing =
          fmt::format("it ends at byte {}; what follows there is not read", json.offset());
    }
    return std::move(outcome);
  }
  const bool cut = json.at_end();
  if (outcome.events == 0 && !cut) {
    return fail(Errc::protocol, "not a trace in JSON: byte {}: {}", json.offset(), json.problem());
  }
  outcome.missing =
      cut ? fmt::format("it ends within the array at byte {}; the {} events before are used",
                        json.offset(), outcome.events)
          : fmt::format("damaged at byte {} ({}); the {} events before are used", json.offset(),
                        json.problem(), outcome.events);
  return std::move(outcome);
}

}  // namespace horo::timeline
