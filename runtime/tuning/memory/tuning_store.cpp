// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/memory/tuning_store.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/unique_fd.hpp"

namespace horo::runtime::tuning {

namespace {

constexpr std::string_view kHeader = "horo tuning results, version ";
constexpr int kVersion = 2;
constexpr auto kLockTime = std::chrono::seconds(2);
constexpr auto kLockPause = std::chrono::milliseconds(10);

/// Nothing: there is no such file.
Result<std::optional<std::string>> read_file(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.value() < 0 && errno == ENOENT) return std::optional<std::string>();
  if (file.value() < 0) return fail_errno(errno, fmt::format("reading '{}'", path));
  std::string text;
  char part[65536];
  for (;;) {
    const auto count = read(file.value(), part, sizeof part);
    if (count < 0) return fail_errno(errno, fmt::format("reading '{}'", path));
    if (count == 0) return std::optional(std::move(text));
    text.append(part, static_cast<std::size_t>(count));
  }
}

std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  const auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// The file's results. Fails: protocol (it is damaged), unsupported (a later version wrote it).
Result<std::vector<StoredResult>> parse(std::string_view text) {
  auto header = take_line(text);
  if (header.substr(0, kHeader.size()) != kHeader)
    return fail(Errc::protocol, "its first line is not that of a file of tuning results");
  header.remove_prefix(kHeader.size());
  int version = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), version);
  if (error != std::errc{} || end != header.data() + header.size() || version < 1)
    return fail(Errc::protocol, "its version is no number");
  if (version > kVersion)
    return fail(Errc::unsupported, "it is of version {}, this Horo reads version {}", version,
                kVersion);
  std::vector<StoredResult> results;
  while (!text.empty()) {
    const auto line = take_line(text);
    if (line == fmt::format("end {}", results.size()) && text.empty()) return results;
    HORO_TRY(auto result, from_line(line));
    results.push_back(std::move(result));
  }
  return fail(Errc::protocol, "it is cut after {} results", results.size());
}

std::string text_of(const std::vector<StoredResult>& results) {
  auto text = fmt::format("{}{}\n", kHeader, kVersion);
  for (const auto& one : results) text += to_line(one) + "\n";
  return text + fmt::format("end {}\n", results.size());
}

/// Closing the descriptor releases the lock. The jobs of a user hold it for milliseconds, so a
/// process that keeps it is stopped or hangs; nobody should wait for that.
Result<UniqueFd> lock(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.value() < 0) return fail_errno(errno, fmt::format("opening '{}'", path));
  const auto end = std::chrono::steady_clock::now() + kLockTime;
  while (flock(file.value(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return fail_errno(errno, fmt::format("locking '{}'", path));
    if (std::chrono::steady_clock::now() > end) {
      return fail(Errc::timed_out, "another process has held the lock '{}' for {} seconds", path,
                  kLockTime.count());
    }
    std::this_thread::sleep_for(kLockPause);
  }
  return file;
}

Status write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const auto count = write(file, text.data(), text.size());
    if (count < 0 && errno != EINTR) return fail_errno(errno, fmt::format("writing '{}'", path));
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (fsync(file) != 0) return fail_errno(errno, fmt::format("writing '{}'", path));
  return {};
}

}  // namespace

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
    : folder_(std::move(folder)), path_(folder_ + "/tuning-results") {}

Result<std::vector<StoredResult>> TuningStore::list() const {
  HORO_TRY(const auto text, read_file(path_));
  if (!text) return std::vector<StoredResult>();
  auto results = parse(*text);
  if (results || results.error().code != Errc::protocol)
    return std::move(results).context(fmt::format("reading '{}'", path_));
  // A writer may have replaced it meanwhile; with the lock, nobody does.
  HORO_TRY(const auto locked, lock(path_ + ".lock"));
  return read_or_put_aside();
}

Result<std::vector<StoredResult>> TuningStore::read_or_put_aside() const {
  HORO_TRY(const auto text, read_file(path_));
  if (!text) return std::vector<StoredResult>();
  auto results = parse(*text);
  if (results || results.error().code != Errc::protocol)
    return std::move(results).context(fmt::format("reading '{}'", path_));
  HORO_TRY_STATUS(put_aside(results.error().message));
  return std::vector<StoredResult>();
}

Status TuningStore::put_aside(const std::string& reason) const {
  const auto aside = fmt::format("{}.damaged-{}", path_, std::time(nullptr));
  if (rename(path_.c_str(), aside.c_str()) != 0)
    return fail_errno(errno, fmt::format("renaming '{}' to '{}'", path_, aside));
  log::warn("runtime", "autotuning: '{}' is damaged: {}; it is now '{}', and a new one begins",
            path_, reason, aside);
  return {};
}

Result<std::optional<StoredResult>> TuningStore::find(const JobKey& key) const {
  HORO_TRY(const auto results, list());
  for (const auto& one : results) {
    if (one.key == key) return std::optional(one);
  }
  return std::optional<StoredResult>();
}

Status TuningStore::change(const Change& change) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return fail_errno(error.value(), fmt::format("making the folder '{}'", folder_));
  HORO_TRY(const auto locked, lock(path_ + ".lock"));
  HORO_TRY(auto results, read_or_put_aside());
  change(results);
  return replace(results);
}

Status TuningStore::replace(const std::vector<StoredResult>& results) const {
  const auto beside = path_ + ".new";
  {
    const UniqueFd file(open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file.value() < 0) return fail_errno(errno, fmt::format("writing '{}'", beside));
    HORO_TRY_STATUS(write_all(file.value(), text_of(results), beside));
  }
  if (rename(beside.c_str(), path_.c_str()) != 0)
    return fail_errno(errno, fmt::format("renaming '{}' to '{}'", beside, path_));
  return {};
}

Status TuningStore::remember(const StoredResult& result) {
  // As it will be read again.
  HORO_TRY(const auto kept, from_line(to_line(result)));
  return change([&](std::vector<StoredResult>& results) {
    std::erase_if(results, [&](const StoredResult& one) { return one.key == kept.key; });
    results.push_back(kept);
    if (results.size() > kMostResults)
      results.erase(results.begin(), results.end() - static_cast<std::ptrdiff_t>(kMostResults));
  });
}

Result<std::size_t> TuningStore::forget(const std::function<bool(const StoredResult&)>& which) {
  std::size_t count = 0;
  HORO_TRY_STATUS(
      change([&](std::vector<StoredResult>& results) { count = std::erase_if(results, which); }));
  return count;
}

}  // namespace horo::runtime::tuning
