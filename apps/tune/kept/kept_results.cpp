// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/kept/kept_results.hpp"

#include <charconv>
#include <ctime>

#include "base/text/printable.hpp"
#include "runtime/tuning/tuning_space.hpp"

namespace horo::apps {

namespace {

using runtime::tuning::describe;
using runtime::tuning::StoredResult;
using runtime::tuning::TuningStore;
using runtime::tuning::UnfinishedStore;

std::string day_of(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  if (gmtime_r(&time, &parts) == nullptr) return "-";
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string outcome_of(const StoredResult& result) {
  if (!result.beats_default) return "the default is best";
  return fmt::format("{}: {:.1f} % +- {:.1f} % faster than the default", describe(result.tuning),
                     100 * result.gain, 100 * result.gain_error);
}

std::string count_of(std::size_t results) {
  return results == 1 ? "1 result" : fmt::format("{} results", results);
}

}  // namespace

Result<std::string> folder_of_results(const std::string& memory,
                                      const std::function<const char*(const char*)>& lookup) {
  if (memory == "off") {
    return fail(Errc::invalid_argument,
                "autotune.memory is off, so no results are kept; name a folder with "
                "--autotune-memory");
  }
  if (!memory.empty()) return memory;
  return runtime::tuning::state_folder(lookup);
}

std::string kept_results_text(std::span<const StoredResult> results, std::string_view path) {
  if (results.empty()) return fmt::format("no results are kept in {}\n", printable(path));
  auto text = fmt::format("{} in {}:\n", count_of(results.size()), printable(path));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& result = results[i];
    text += fmt::format("{:>4}  {}  {}, after {} samples\n      on {}; {}\n", i + 1,
                        day_of(result.time), outcome_of(result), result.samples,
                        printable(result.key.topology), printable(result.key.tensors));
  }
  return text;
}

Result<std::string> forget_results(TuningStore& store, UnfinishedStore& searches,
                                   std::string_view which) {
  HORO_TRY(const auto results, store.list());
  if (which == "all") {
    HORO_TRY(const auto gone, store.forget([](const StoredResult&) { return true; }));
    HORO_TRY(const auto cut, searches.forget_all());
    if (cut == 0) return fmt::format("{} forgotten\n", count_of(gone));
    return fmt::format("{} and {} unfinished search{} forgotten\n", count_of(gone), cut,
                       cut == 1 ? "" : "es");
  }
  std::size_t number = 0;
  const auto [stop, error] = std::from_chars(which.data(), which.data() + which.size(), number);
  if (error != std::errc{} || stop != which.data() + which.size() || number < 1 ||
      number > results.size()) {
    return fail(Errc::invalid_argument,
                "option '--forget': '{}' must be 'all' or a number that --list shows, and it shows "
                "{}",
                printable(which), count_of(results.size()));
  }
  // Other jobs may have changed the numbers since then, but not the key.
  const auto& key = results[number - 1].key;
  HORO_TRY(const auto gone,
           store.forget([&key](const StoredResult& result) { return result.key == key; }));
  return fmt::format("{} forgotten: {}\n", count_of(gone), outcome_of(results[number - 1]));
}

}  // namespace horo::apps
