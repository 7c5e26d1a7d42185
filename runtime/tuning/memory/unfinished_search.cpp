// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/memory/unfinished_search.hpp"

#include <charconv>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace horo::runtime::tuning {

namespace {

constexpr std::size_t kSearchFields = 6;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_finite(std::string_view text, double& value) {
  return read_number(text, value) && std::isfinite(value);
}

std::string text_of(const Tuning& tuning) {
  return fmt::format("{},{},{},{}", tuning.fusion_threshold, tuning.cycle_ns, tuning.wake_delay_ns,
                     tuning.small_message);
}

/// Reads the values of a tuning at the beginning of `values`, and removes them.
bool read_tuning(std::vector<std::string_view>& values, Tuning& tuning) {
  constexpr std::size_t kValues = 4;
  if (values.size() < kValues || !read_number(values[0], tuning.fusion_threshold) ||
      !read_number(values[1], tuning.cycle_ns) || !read_number(values[2], tuning.wake_delay_ns) ||
      !read_number(values[3], tuning.small_message))
    return false;
  values.erase(values.begin(), values.begin() + kValues);
  return true;
}

bool read_sample(std::string_view text, TriedTuning& sample) {
  auto values = split(text, ',');
  return read_tuning(values, sample.tuning) && values.size() == 2 &&
         read_finite(values[0], sample.score) && sample.score > 0 &&
         read_finite(values[1], sample.standard_error);
}

bool read_samples(std::string_view text, std::vector<TriedTuning>& samples) {
  for (const auto part : split(text, ';')) {
    if (!read_sample(part, samples.emplace_back())) return false;
  }
  return !samples.empty();
}

bool read_turns(std::string_view challenger, std::string_view turns, EarlierSearch& search) {
  if (!challenger.empty()) {
    auto values = split(challenger, ',');
    if (!read_tuning(values, search.challenger.emplace()) || !values.empty()) return false;
  }
  for (const auto part : split(turns, ';')) {
    if (!read_finite(part, search.turns.emplace_back())) return false;
  }
  return search.turns.size() % 2 == 0 && (search.challenger || search.turns.empty());
}

}  // namespace

std::string to_line(const UnfinishedSearch& search) {
  std::string samples;
  for (const auto& one : search.search.samples) {
    fmt::format_to(std::back_inserter(samples), "{}{},{},{}", samples.empty() ? "" : ";",
                   text_of(one.tuning), one.score, one.standard_error);
  }
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}", kept_text(search.key.topology),
                     kept_text(search.key.tensors), search.time, samples,
                     search.search.challenger ? text_of(*search.search.challenger) : std::string(),
                     fmt::join(search.search.turns, ";"));
}

Result<UnfinishedSearch> unfinished_from_line(std::string_view line) {
  const auto fields = split(line, '\t');
  if (fields.size() != kSearchFields) {
    return fail(Errc::protocol, "a search has {} values instead of {}", fields.size(),
                kSearchFields);
  }
  UnfinishedSearch search{
      .key = {.topology = std::string(fields[0]), .tensors = std::string(fields[1])}};
  if (!read_number(fields[2], search.time))
    return fail(Errc::protocol, "the time of a search is no number");
  if (!read_samples(fields[3], search.search.samples))
    return fail(Errc::protocol, "the samples of a search are damaged");
  if (!read_turns(fields[4], fields[5], search.search))
    return fail(Errc::protocol, "the turns of a search are damaged");
  return search;
}

}  // namespace horo::runtime::tuning
