// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

namespace horo::timeline {

namespace {

constexpr std::size_t kMostArguments = 24;
constexpr std::size_t kMostText = 512;
constexpr std::size_t kMostDepth = 64;

/// A ByteSource as RapidJSON reads. Its end and a failure are a NUL, which JSON never has.
class Stream {
 public:
  using Ch = char;

  explicit Stream(const ByteSource& source) : source_(source), buffer_(std::size_t{256} << 10U) {
    fill();
  }

  Ch Peek() const { return at_ < size_ ? buffer_[at_] : '\0'; }

  Ch Take() {
    const Ch c = Peek();
    ++at_;
    if (at_ >= size_ && !over_) fill();
    return c;
  }

  std::size_t Tell() const { return before_ + std::min(at_, size_); }

  bool at_end() const { return over_ && at_ >= size_; }

  const Status& status() const { return status_; }

  // RapidJSON asks for these of streams that are written in place; none is.
  Ch* PutBegin() { return nullptr; }

  void Put(Ch /*c*/) {}

  void Flush() {}

  std::size_t PutEnd(Ch* /*begin*/) { return 0; }

 private:
  void fill() {
    before_ += size_;
    size_ = at_ = 0;
    auto got = source_(buffer_.data(), buffer_.size());
    if (!got) {
      status_ = Failure(std::move(got).error());
      over_ = true;
      return;
    }
    size_ = *got;
    over_ = size_ == 0;
  }

  const ByteSource& source_;
  std::vector<char> buffer_;
  std::size_t before_ = 0;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  bool over_ = false;
  Status status_;
};

/// Follows where in the document it is: events are the objects of the outermost array, or of the
/// array "traceEvents" of the outermost object.
class Handler {
 public:
  Handler(const std::function<void(const ChromeEvent&)>& use, ChromeOutcome& outcome)
      : use_(use), outcome_(outcome) {}

  bool Null() { return true; }

  bool Bool(bool value) { return scalar(value ? "true" : "false", value ? 1 : 0); }

  bool Int(int value) { return number(value); }

  bool Uint(unsigned value) { return number(value); }

  bool Int64(std::int64_t value) { return number(value); }

  bool Uint64(std::uint64_t value) { return number(value); }

  bool Double(double value) { return number(value); }

  bool RawNumber(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    double value = 0;
    std::from_chars(text, text + size, value);
    return scalar({text, size}, value);
  }

  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return scalar(std::string_view(text, size).substr(0, kMostText), std::nullopt);
  }

  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    const std::string_view key(text, std::min<std::size_t>(size, kMostText));
    if (in_event() && depth_ == event_depth_) key_ = key;
    if (in_event() && depth_ == event_depth_ + 1) inner_key_ = key;
    if (!in_event() && depth_ == 1) top_key_ = key;
    if (!in_event() && depth_ == 2) inner_key_ = key;
    return true;
  }

  bool StartObject() {
    if (++depth_ > kMostDepth) return false;
    if (in_event() || depth_ != array_depth_ + 1 || array_depth_ == 0) return true;
    event_depth_ = depth_;
    event_.phase = '\0';
    event_.name.clear();
    event_.category.clear();
    event_.pid.clear();
    event_.tid.clear();
    event_.ts_us = event_.duration_us = 0;
    event_.arguments.clear();
    return true;
  }

  bool EndObject(rapidjson::SizeType /*members*/) {
    if (in_event() && depth_ == event_depth_) {
      event_depth_ = 0;
      if (event_.phase != '\0') {
        ++outcome_.events;
        use_(event_);
      }
    }
    --depth_;
    return true;
  }

  bool StartArray() {
    if (++depth_ > kMostDepth) return false;
    const bool events = depth_ == 1 || (depth_ == 2 && top_key_ == "traceEvents");
    if (!in_event() && array_depth_ == 0 && events) array_depth_ = depth_;
    return true;
  }

  bool EndArray(rapidjson::SizeType /*elements*/) {
    if (depth_ == array_depth_) array_depth_ = 0;
    --depth_;
    return true;
  }

 private:
  bool in_event() const { return event_depth_ != 0; }

  template <typename T>
  bool number(T value) {
    std::array<char, 40> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return scalar({text.data(), static_cast<std::size_t>(end - text.data())},
                  static_cast<double>(value));
  }

  bool scalar(std::string_view text, std::optional<double> value) {
    if (!in_event()) {
      if (depth_ == 2 && top_key_ == "distributedInfo" && inner_key_ == "rank" && value)
        outcome_.rank = static_cast<int>(*value);
      return true;
    }
    if (depth_ == event_depth_ + 1 && key_ == "args") {
      if (event_.arguments.size() < kMostArguments) event_.arguments.emplace_back(inner_key_, text);
      return true;
    }
    if (depth_ != event_depth_) return true;
    if (key_ == "ph") event_.phase = text.empty() ? '\0' : text.front();
    if (key_ == "name") event_.name = text;
    if (key_ == "cat") event_.category = text;
    if (key_ == "pid") event_.pid = text;
    if (key_ == "tid") event_.tid = text;
    if (key_ == "ts") event_.ts_us = value.value_or(0);
    if (key_ == "dur") event_.duration_us = value.value_or(0);
    return true;
  }

  const std::function<void(const ChromeEvent&)>& use_;
  ChromeOutcome& outcome_;
  ChromeEvent event_;
  std::string key_;
  std::string inner_key_;
  std::string top_key_;
  std::size_t depth_ = 0;
  std::size_t array_depth_ = 0;  ///< Of the array whose objects are events; 0: not in it.
  std::size_t event_depth_ = 0;  ///< Of the event's object; 0: not in one.
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
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseStopWhenDoneFlag |
                              rapidjson::kParseTrailingCommasFlag | rapidjson::kParseNanAndInfFlag;
  ChromeOutcome outcome;
  Stream stream(source);
  if (!stream.status()) return Failure(Error(stream.status().error()));
  Handler handler(use, outcome);
  rapidjson::Reader reader;
  const auto result = reader.Parse<kFlags>(stream, handler);
  if (!stream.status()) return Failure(Error(stream.status().error()));
  if (!result.IsError()) {
    if (outcome.events == 0) outcome.missing = "it has no events";
    return outcome;
  }
  if (outcome.events == 0 && !stream.at_end()) {
    return fail(Errc::protocol, "no trace in JSON: byte {}: {}", result.Offset(),
                rapidjson::GetParseError_En(result.Code()));
  }
  outcome.missing =
      stream.at_end()
          ? fmt::format(
                "it ends within the array at byte {}; the {} events before are "
                "used",
                stream.Tell(), outcome.events)
          : fmt::format("damaged at byte {} ({}); the {} events before are used", result.Offset(),
                        rapidjson::GetParseError_En(result.Code()), outcome.events);
  return outcome;
}

}  // namespace horo::timeline
