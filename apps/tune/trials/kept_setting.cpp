// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/kept_setting.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "apps/common/shell.hpp"
#include "base/json.hpp"
#include "base/knobs/value.hpp"
#include "base/text/printable.hpp"

namespace horo::apps {

namespace {

/// A column of a log as a knob: what one of its numbers is in bytes or nanoseconds.
struct LogKnob {
  std::string_view column;
  std::string_view key;
  double unit;
  bool always;  ///< To be kept also where it was the same in all samples.
};

constexpr LogKnob kLogKnobs[] = {
    {"fusion threshold", "fusion.threshold", 1 << 20, true},
    {"cycle time", "cycle.time", 1e6, true},
    {"wake delay", "wake.delay", 1e3, true},
    {"small message", "small.message", 1024, false},
};

bool is_plain(std::string_view word) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+%@";
  return !word.empty() && word.find_first_not_of(kSafe) == std::string_view::npos;
}

std::string for_shell(const std::string& word) {
  if (is_plain(word)) return word;
  const auto equals = word.find('=');
  if (equals == std::string::npos) return shell_quoted(word);
  return word.substr(0, equals + 1) + shell_quoted(word.substr(equals + 1));
}

const KnobRow& row_of_key(std::string_view key) {
  return knob_rows()[static_cast<std::size_t>(knob_index(key))];
}

bool is_tuned(const SettingWords* words, std::string_view key) {
  if (words == nullptr) return false;
  if (key == "mpi.args" && !words->mpi_args.empty()) return true;
  return std::any_of(words->knobs.begin(), words->knobs.end(),
                     [key](const auto& knob) { return knob.first == key; });
}

/// The values of the job's own config file, which only one --config-file can replace. Those of the
/// autotuner are left out, because nothing is to be tuned any more.
std::string earlier_values(const SettingWords* words, const Settings& settings) {
  std::string text;
  for (const auto& knob : settings.explain()) {
    if (knob.origin.kind != OriginKind::config || is_tuned(words, knob.key) ||
        knob.key.starts_with("autotune"))
      continue;
    text += fmt::format("{}: {}\n", knob.key, json_quote(knob.value));
  }
  return text.empty() ? text : "# From the config file of the tuned job:\n" + text;
}

}  // namespace

SettingWords words_of_log(const TuneRecord& record, const std::vector<std::string>& values) {
  SettingWords words;
  for (std::size_t i = 0; i < record.columns.size(); ++i) {
    for (const auto& knob : kLogKnobs) {
      if (knob.column != record.columns[i].name) continue;
      const bool varied =
          std::any_of(record.samples.begin(), record.samples.end(),
                      [&](const TriedSample& sample) { return sample.values[i] != values[i]; });
      if (!knob.always && !varied) continue;
      double number = 0;
      std::from_chars(values[i].data(), values[i].data() + values[i].size(), number);
      words.knobs.emplace_back(
          knob.key, format_knob(row_of_key(knob.key),
                                static_cast<std::int64_t>(std::llround(number * knob.unit))));
    }
  }
  return words;
}

std::string command_to_keep(const SettingWords& words) {
  std::string text;
  for (const auto& word : words.variable_words()) text += for_shell(word) + " ";
  text += "horo run";
  for (const auto& word : words.flag_words()) text += " " + for_shell(word);
  return text + " ...";
}

std::string config_file_text(const SettingWords* words, const Settings& settings,
                             const std::string& verdict) {
  auto text =
      fmt::format("# Written by horo tune for horo run --config-file: {}\n", printable(verdict));
  if (words == nullptr) return text + earlier_values(words, settings);
  for (const auto& word : words->variable_words())
    text += fmt::format("# Set this variable too: {}\n", printable(for_shell(word)));
  for (const auto& [key, value] : words->knobs)
    text += fmt::format("{}: {}\n", key, json_quote(value));
  if (!words->mpi_args.empty()) text += fmt::format("mpi.args: {}\n", json_quote(words->mpi_args));
  return text + earlier_values(words, settings);
}

}  // namespace horo::apps
