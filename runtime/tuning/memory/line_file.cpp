// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/memory/line_file.hpp"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <optional>
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
  return {};
}

}  // namespace

LineFile::LineFile(std::string folder, LineFileForm form)
    : folder_(std::move(folder)),
      form_(std::move(form)),
      path_(fmt::format("{}/{}", folder_, form_.name)) {}

Result<LineFile::Lines> LineFile::parse(std::string_view text) const {
  auto header = take_line(text);
  if (header.substr(0, form_.header.size()) != form_.header)
    return fail(Errc::protocol, "its first line is not that of {}", form_.kind);
  header.remove_prefix(form_.header.size());
  int version = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), version);
  if (error != std::errc{} || end != header.data() + header.size() || version < 1)
    return fail(Errc::protocol, "its version is no number");
  if (version > form_.version) {
    return fail(Errc::unsupported, "it is of version {}, this Horo reads version {}", version,
                form_.version);
  }
  Lines lines;
  while (!text.empty()) {
    const auto line = take_line(text);
    if (line == fmt::format("end {}", lines.size()) && text.empty()) return lines;
    HORO_TRY_STATUS(form_.check(line));
    lines.emplace_back(line);
  }
  return fail(Errc::protocol, "it is cut after {} lines", lines.size());
}

Result<LineFile::Lines> LineFile::list() const {
  HORO_TRY(const auto text, read_file(path_));
  if (!text) return Lines();
  auto lines = parse(*text);
  if (lines || lines.error().code != Errc::protocol)
    return std::move(lines).context(fmt::format("reading '{}'", path_));
  // A writer may have replaced it meanwhile; with the lock, nobody does.
  HORO_TRY(const auto locked, lock(path_ + ".lock"));
  return read_or_put_aside();
}

Result<LineFile::Lines> LineFile::read_or_put_aside() const {
  HORO_TRY(const auto text, read_file(path_));
  if (!text) return Lines();
  auto lines = parse(*text);
  if (lines || lines.error().code != Errc::protocol)
    return std::move(lines).context(fmt::format("reading '{}'", path_));
  HORO_TRY_STATUS(put_aside(lines.error().message));
  return Lines();
}

Status LineFile::put_aside(const std::string& reason) const {
  const auto aside = fmt::format("{}.damaged-{}", path_, std::time(nullptr));
  if (rename(path_.c_str(), aside.c_str()) != 0)
    return fail_errno(errno, fmt::format("renaming '{}' to '{}'", path_, aside));
  log::warn("runtime", "autotuning: '{}' is damaged: {}; it is now '{}', and a new one begins",
            path_, reason, aside);
  return {};
}

Status LineFile::change(const std::function<void(Lines&)>& change) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return fail_errno(error.value(), fmt::format("making the folder '{}'", folder_));
  HORO_TRY(const auto locked, lock(path_ + ".lock"));
  HORO_TRY(auto lines, read_or_put_aside());
  change(lines);
  return replace(lines);
}

Status LineFile::replace(const Lines& lines) const {
  auto text = fmt::format("{}{}\n", form_.header, form_.version);
  for (const auto& line : lines) text += line + "\n";
  text += fmt::format("end {}\n", lines.size());
  const auto beside = path_ + ".new";
  {
    const UniqueFd file(open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file.value() < 0) return fail_errno(errno, fmt::format("writing '{}'", beside));
    HORO_TRY_STATUS(write_all(file.value(), text, beside));
    if (form_.durable && fsync(file.value()) != 0)
      return fail_errno(errno, fmt::format("writing '{}'", beside));
  }
  if (rename(beside.c_str(), path_.c_str()) != 0)
    return fail_errno(errno, fmt::format("renaming '{}' to '{}'", beside, path_));
  return {};
}

}  // namespace horo::runtime::tuning
