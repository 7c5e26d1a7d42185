// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/memory/tuning_store.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace horo::runtime::tuning {

Result<std::string> state_folder(const std::function<const char*(const char*)>& variable) {
  const auto value = [&](const char* name) {
    const char* text = variable(name);
    return std::string(text == nullptr ? "" : text);
  };
  // The specification of these folders says that a relative path is to be ignored.
  if (const auto state = value("XDG_STATE_HOME"); state.starts_with('/')) return state + "/horo";
  if (const auto home = value("HOME"); home.starts_with('/')) return home + "/.local/state/horo";
  return fail(Errc::not_found,
              "neither XDG_STATE_HOME nor HOME names a folder; set autotune.memory to one");
}

TuningStore::TuningStore(std::string folder)
    : file_(std::move(folder), {.name = "tuning-results",
                                .header = "horo tuning results, version ",
                                .kind = "a file of tuning results",
                                .version = 2,
                                .check = [](std::string_view line) -> Status {
                                  HORO_TRY(const auto result, from_line(line));
                                  static_cast<void>(result);
                                  return {};
                                }}) {}

Result<std::vector<StoredResult>> TuningStore::list() const {
  HORO_TRY(const auto lines, file_.list());
  std::vector<StoredResult> results;
  for (const auto& line : lines) {
    HORO_TRY(auto result, from_line(line));
    results.push_back(std::move(result));
  }
  return results;
}

Result<std::optional<StoredResult>> TuningStore::find(const JobKey& key) const {
  HORO_TRY(const auto results, list());
  for (const auto& one : results) {
    if (one.key == key) return std::optional(one);
  }
  return std::optional<StoredResult>();
}

Status TuningStore::remember(const StoredResult& result) {
  const auto line = to_line(result);
  // As it will be read again.
  HORO_TRY(const auto kept, from_line(line));
  return file_.change([&](LineFile::Lines& lines) {
    std::erase_if(lines, [&](const std::string& one) {
      const auto old = from_line(one);
      return old && old->key == kept.key;
    });
    lines.push_back(line);
    if (lines.size() > kMostResults)
      lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kMostResults));
  });
}

Result<std::size_t> TuningStore::forget(const std::function<bool(const StoredResult&)>& which) {
  std::size_t count = 0;
  HORO_TRY_STATUS(file_.change([&](LineFile::Lines& lines) {
    count = std::erase_if(lines, [&](const std::string& one) {
      const auto result = from_line(one);
      return result && which(*result);
    });
  }));
  return count;
}

}  // namespace horo::runtime::tuning
