// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/record/read_tune_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "autotune/search.hpp"
#include "base/text/printable.hpp"
#include "discovery/text_file.hpp"

namespace horo::apps {

namespace {

/// A column of the settings, as logs name it.
struct LogColumn {
  std::string_view header;
  std::string_view name;
  std::string_view unit;
  bool is_number;
  double offset;
  bool required;
};

// The offsets are the steps of the search, so that distances are those of the search.
constexpr std::array<LogColumn, 8> kSettingColumns{{
    {"tensor_fusion_threshold", "fusion threshold", "MiB", true, 0.0625, true},
    {"cycle_time_ms", "cycle time", "ms", true, 0.05, true},
    {"wake_delay_us", "wake delay", "us", true, 10, false},
    {"small_message_kib", "small message", "KiB", true, 16, false},
    {"hierarchical_allreduce", "hierarchical allreduce", "", false, 0, false},
    {"hierarchical_allgather", "hierarchical allgather", "", false, 0, false},
    {"torus_allreduce", "torus allreduce", "", false, 0, false},
    {"cache_enabled", "cache enabled", "", false, 0, false},
}};

constexpr std::array<std::string_view, 7> kOtherColumns{
    "score", "score_unit", "standard_error", "steps", "state", "gain_percent", "gain_error_percent",
};
constexpr std::string_view kChance = "chance_percent";

/// More warnings than these are counted only.
constexpr std::size_t kMostWarnings = 10;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const auto comma = line.find(',');
    fields.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

/// A number of a setting: no setting is below 0, or without end.
bool is_setting(std::string_view text) {
  const auto number = number_in(text);
  return number && std::isfinite(*number) && *number >= 0;
}

/// A standard error or a number of steps; 0 where there is none, or none that makes sense.
double amount_in(std::string_view text) {
  constexpr double kMostAmount = 1e15;
  const double number = number_in(text).value_or(0);
  return number >= 0 && number <= kMostAmount ? number : 0;
}

/// A percentage of the last line.
std::optional<double> percent_in(std::string_view text) {
  const auto number = number_in(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

class LogReader {
 public:
  explicit LogReader(std::string_view path) : path_(path) { record_.source = path; }

  Result<TuneRecord> read(std::string_view text) {
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
      return fail(Errc::invalid_argument,
                  "the autotune log '{}' is empty; rank 0 writes its first line when the job "
                  "starts with --autotune and --autotune-log-file",
                  path_);
    }
    for (std::size_t line = 1; !text.empty(); ++line) {
      const auto end = text.find('\n');
      const bool is_whole = end != std::string_view::npos;
      const auto content = text.substr(0, end);
      text.remove_prefix(is_whole ? end + 1 : text.size());
      if (line == 1) {
        HORO_TRY_STATUS(read_header(content));
      } else if (!trimmed(content).empty()) {
        read_line(line, content, is_whole);
      }
    }
    finish();
    return std::move(record_);
  }

 private:
  Status read_header(std::string_view line) {
    headers_ = fields_of(line);
    for (const auto& column : kSettingColumns) {
      if (has(column.header)) {
        record_.columns.push_back({.name = std::string(column.name),
                                   .unit = std::string(column.unit),
                                   .is_number = column.is_number,
                                   .offset = column.offset});
        wanted_.push_back(&column);
      } else if (column.required) {
        return no_log(column.header);
      }
    }
    if (!has("score")) return no_log("score");
    record_.kind = has("state") ? TuneSource::horo_log : TuneSource::horovod_log;
    warn_of_unknown();
    return {};
  }

  Failure no_log(std::string_view column) const {
    return fail(Errc::invalid_argument,
                "'{}' is no autotune log that this version of Horo can read: its first line has no "
                "column '{}'; logs of Horo and Horovod begin with 'hierarchical_allreduce,...,"
                "cycle_time_ms,tensor_fusion_threshold,score'",
                path_, column);
  }

  void warn_of_unknown() {
    std::string names;
    for (const auto header : headers_) {
      const bool known =
          std::find(kOtherColumns.begin(), kOtherColumns.end(), header) != kOtherColumns.end() ||
          header == kChance ||
          std::any_of(kSettingColumns.begin(), kSettingColumns.end(),
                      [&](const LogColumn& c) { return c.header == header; });
      if (!known) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", printable(header));
    }
    if (!names.empty()) warn(1, fmt::format("this version does not know the columns {}", names));
  }

  bool has(std::string_view header) const {
    return std::find(headers_.begin(), headers_.end(), header) != headers_.end();
  }

  /// Empty where the log has no such column.
  std::string_view field(std::string_view header) const {
    const auto found = std::find(headers_.begin(), headers_.end(), header);
    return found == headers_.end() ? std::string_view()
                                   : fields_[static_cast<std::size_t>(found - headers_.begin())];
  }

  void read_line(std::size_t line, std::string_view content, bool is_whole) {
    fields_ = fields_of(content);
    if (!is_whole) {
      return warn(line,
                  "the line has no end, so it may be cut; the lines before it are used without it");
    }
    if (fields_.size() != headers_.size()) {
      return warn(line, fmt::format("the line has {} values instead of {}; it is left out",
                                    fields_.size(), headers_.size()));
    }
    TriedSample sample{.line = line, .values = {}, .stage = std::string(field("state"))};
    for (const auto* column : wanted_) {
      const auto value = field(column->header);
      if (value.empty() || (column->is_number && !is_setting(value)))
        return warn_of_value(line, column->header, value);
      sample.values.emplace_back(value);
    }
    const auto score = number_in(field("score"));
    if (!score) return warn_of_value(line, "score", field("score"));
    sample.score = *score;
    sample.standard_error = amount_in(field("standard_error"));
    sample.steps = static_cast<std::size_t>(amount_in(field("steps")));
    take(std::move(sample));
  }

  void warn_of_value(std::size_t line, std::string_view header, std::string_view value) {
    warn(line,
         fmt::format("'{}' is no value of {}; the line is left out", printable(value), header));
  }

  void take(TriedSample sample) {
    if (is_ending_state(sample.stage)) {
      record_.ending =
          RecordedEnding{.state = sample.stage == kEndedInWarmUp ? kEndedEarly : sample.stage,
                         .values = std::move(sample.values),
                         .gain_percent = percent_in(field("gain_percent")),
                         .gain_error_percent = percent_in(field("gain_error_percent")),
                         .chance_percent = percent_in(field(kChance))};
      return;
    }
    if (record_.ending && record_.kind == TuneSource::horo_log) begin_search();
    if (!(sample.score > 0) || !std::isfinite(sample.score))
      sample.failure = "no tensor was reduced";
    record_.samples.push_back(std::move(sample));
  }

  /// The watch over a job's throughput has started another search.
  void begin_search() {
    auto& earlier = record_.earlier;
    if (earlier.count++ == 0) {
      earlier.fallback =
          record_.samples.empty() ? record_.ending->values : record_.samples.front().values;
    }
    earlier.base = std::move(record_.ending->values);
    record_.ending.reset();
    record_.samples.clear();
  }

  /// Horovod repeats its best setting and score in the last line, when its search has ended.
  void finish() {
    if (warnings_ > kMostWarnings) {
      record_.warnings.push_back(
          fmt::format("{}: {} more lines are left out", path_, warnings_ - kMostWarnings));
    }
    if (const auto count = record_.earlier.count; count > 0) {
      record_.notes.push_back(
          fmt::format("the log has {} searches; this report is about the last one, which began "
                      "with the setting "
                      "that the job had kept before it",
                      count + 1));
    }
    if (record_.kind != TuneSource::horovod_log || record_.samples.size() < 2) return;
    const auto& last = record_.samples.back();
    const auto best = std::max_element(
        record_.samples.begin(), record_.samples.end() - 1,
        [](const TriedSample& a, const TriedSample& b) { return a.score < b.score; });
    if (best->score != last.score || best->values != last.values) return;
    record_.ending = RecordedEnding{.state = "", .values = last.values};
    record_.samples.pop_back();
  }

  void warn(std::size_t line, std::string_view what) {
    if (++warnings_ > kMostWarnings) return;
    record_.warnings.push_back(fmt::format("{}:{}: {}", path_, line, what));
  }

  std::string_view path_;
  TuneRecord record_;
  std::vector<std::string_view> headers_;
  std::vector<const LogColumn*> wanted_;
  std::vector<std::string_view> fields_;  // The line that is being read.
  std::size_t warnings_ = 0;
};

}  // namespace

bool is_ending_state(const std::string& state) {
  using autotune::SearchEnding;
  if (state == kEndedEarly || state == kEndedInWarmUp || state == kKnownHolds) return true;
  for (const auto ending :
       {SearchEnding::nothing_to_tune, SearchEnding::budget_too_short,
        SearchEnding::default_is_best, SearchEnding::default_stays, SearchEnding::challenger_won}) {
    if (state == autotune::name(ending)) return true;
  }
  return false;
}

std::optional<std::vector<std::string>> setting_to_keep(const TuneRecord& record) {
  const auto& earlier = record.earlier;
  const auto& kept = record.ending ? record.ending->values : earlier.base;
  if (earlier.count > 0) return kept == earlier.fallback ? std::nullopt : std::optional(kept);
  const bool won = record.ending &&
                   (record.ending->state == kChallengerWon || record.ending->state == kKnownHolds);
  return won ? std::optional(kept) : std::nullopt;
}

Result<TuneRecord> parse_tune_log(std::string_view text, std::string_view path) {
  return LogReader(path).read(text);
}

Result<TuneRecord> read_tune_log(const std::string& path) {
  auto text = discovery::read_text_file(path);
  if (!text)
    return Failure(std::move(text).error().context(fmt::format("autotune log '{}'", path)));
  return parse_tune_log(*text, path);
}

}  // namespace horo::apps
