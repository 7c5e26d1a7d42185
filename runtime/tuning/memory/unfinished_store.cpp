// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/memory/unfinished_store.hpp"

#include <utility>

namespace horo::runtime::tuning {

namespace {

bool has_key(const std::string& line, const JobKey& key) {
  const auto search = unfinished_from_line(line);
  return search && search->key == key;
}

}  // namespace

UnfinishedStore::UnfinishedStore(std::string folder)
    : file_(std::move(folder), {.name = "tuning-searches",
                                .header = "horo tuning searches, version ",
                                .kind = "a file of unfinished searches",
                                .durable = false,
                                .check = [](std::string_view line) -> Status {
                                  HORO_TRY(const auto search, unfinished_from_line(line));
                                  static_cast<void>(search);
                                  return {};
                                }}) {}

Result<std::optional<UnfinishedSearch>> UnfinishedStore::find(const JobKey& key) const {
  HORO_TRY(const auto lines, file_.list());
  for (const auto& line : lines) {
    HORO_TRY(auto search, unfinished_from_line(line));
    if (search.key == key) return std::optional(std::move(search));
  }
  return std::optional<UnfinishedSearch>();
}

Status UnfinishedStore::remember(const UnfinishedSearch& search) {
  const auto line = to_line(search);
  // As it will be read again.
  HORO_TRY(const auto kept, unfinished_from_line(line));
  return file_.change([&](LineFile::Lines& lines) {
    std::erase_if(lines, [&](const std::string& one) { return has_key(one, kept.key); });
    lines.push_back(line);
    if (lines.size() > kMostSearches)
      lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kMostSearches));
  });
}

Status UnfinishedStore::forget(const JobKey& key) {
  HORO_TRY(const auto found, find(key));
  if (!found) return {};
  return file_.change([&](LineFile::Lines& lines) {
    std::erase_if(lines, [&](const std::string& one) { return has_key(one, key); });
  });
}

Result<std::size_t> UnfinishedStore::forget_all() {
  HORO_TRY(const auto found, file_.list());
  if (found.empty()) return std::size_t{0};
  std::size_t count = 0;
  HORO_TRY_STATUS(file_.change([&](LineFile::Lines& lines) {
    count = lines.size();
    lines.clear();
  }));
  return count;
}

}  // namespace horo::runtime::tuning
