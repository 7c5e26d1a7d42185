// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/online_state.hpp"

#include <filesystem>
#include <fstream>

#include "apps/common/replace_file.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"

namespace horo::apps {

namespace {

constexpr std::string_view kOnlineFormatKey = "horo_tune";
constexpr std::string_view kOnlineFormat = "1";
constexpr const char* kResults = "/tuning-results";
constexpr const char* kSearches = "/tuning-searches";

void put_list(JsonWriter& json, const std::vector<std::string>& words) {
  json.begin_array();
  for (const auto& word : words) json.value(word);
  json.end_array();
}

Result<std::vector<std::string>> list_of(const DocumentPart& part, std::string_view name) {
  const auto* list = part.find(name);
  if (list == nullptr || list->kind != PartKind::list)
    return part.wrong(fmt::format("'{}' is missing or damaged", name));
  std::vector<std::string> words;
  for (const auto& item : list->items) words.push_back(item.text);
  return words;
}

/// No lines if there is no such file: the runtime has not written it yet.
std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

Status write_lines(const std::string& path, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  return replace_file(path, fmt::format("{}\n", fmt::join(lines, "\n")));
}

}  // namespace

std::vector<std::string> search_words(const TuneRequest& request) {
  auto words = request.run_words;
  words.emplace_back("--");
  const auto& command = request.job.options.command;
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::string online_text(const OnlineSearch& search) {
  JsonWriter json;
  json.begin_object().key(kOnlineFormatKey).value(1).key("command");
  put_list(json, search.command);
  json.key("online").begin_object().key("results");
  put_list(json, search.results);
  json.key("searches");
  put_list(json, search.searches);
  json.end_object().end_object();
  return json.text() + "\n";
}

bool is_online_search(const DocumentPart& document) {
  return document.find("online") != nullptr;
}

Result<OnlineSearch> online_of_document(const DocumentPart& document,
                                        const std::vector<std::string>& command) {
  constexpr std::string_view kRemedy =
      "name another file with --resume, or remove this one to begin again";
  const auto* format = document.find(kOnlineFormatKey);
  if (format == nullptr || format->text != kOnlineFormat)
    return document.wrong(
        fmt::format("this is no state of a search of version {}; {}", kOnlineFormat, kRemedy));
  if (!is_online_search(document)) {
    return document.wrong(fmt::format(
        "the state is of a search by restarts, which --online cannot continue; {}", kRemedy));
  }
  OnlineSearch search;
  HORO_TRY(search.command, list_of(document, "command"));
  if (search.command != command)
    return document.wrong(fmt::format("the state is of a search for another command; {}", kRemedy));
  const auto& online = *document.find("online");
  HORO_TRY(search.results, list_of(online, "results"));
  HORO_TRY(search.searches, list_of(online, "searches"));
  return search;
}

Result<OnlineState> OnlineState::open(const TuneRequest& request, const std::string& log) {
  OnlineState state;
  if (request.resume.empty()) return state;
  state.file_ = request.resume;
  state.saved_.command = search_words(request);
  const auto parent = std::filesystem::path(log).parent_path().string();
  HORO_TRY(auto folder, ScratchFolder::make(parent.empty() ? "." : parent));
  state.folder_.emplace(std::move(folder));
  std::error_code error;
  if (!std::filesystem::exists(state.file_, error)) return state;
  HORO_TRY(const auto document, read_document(state.file_));
  HORO_TRY(state.saved_, online_of_document(document, state.saved_.command));
  HORO_TRY_STATUS(write_lines(state.folder_->path() + kResults, state.saved_.results));
  HORO_TRY_STATUS(write_lines(state.folder_->path() + kSearches, state.saved_.searches));
  return state;
}

std::vector<std::string> OnlineState::flags() const {
  if (!folder_) return {};
  return {fmt::format("--autotune-memory={}", folder_->path())};
}

void OnlineState::save() {
  if (!folder_) return;
  const OnlineSearch now{.command = saved_.command,
                         .results = lines_of(folder_->path() + kResults),
                         .searches = lines_of(folder_->path() + kSearches)};
  if (now == saved_) return;
  if (const auto saved = replace_file(file_, online_text(now)); !saved) {
    if (!std::exchange(warned_, true))
      log::warn("tune", "the search is not saved: {}", printable(saved.error().message));
    return;
  }
  saved_ = now;
}

}  // namespace horo::apps
