// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/log_files.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace horo::launcher {

namespace {

Status make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const auto part = path.substr(0, end);
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) {
      return fail_errno(errno, fmt::format("making the output directory '{}'", part));
    }
    if (end == std::string::npos) return {};
  }
}

int open_file(const std::string& path, int flags) {
  // Opening a pipe that nothing reads would block.
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | flags, 0666);
  if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

/// How many files may stay open: half of what the process may hold. The rest is for agents and
/// ranks.
std::size_t budget() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return limit.rlim_cur / 2;
}

}  // namespace

int rank_digits(int size) {
  return static_cast<int>(std::to_string(size > 1 ? size - 1 : 0).size());
}

Result<LogFiles> LogFiles::create(const std::string& directory, int size) {
  LogFiles logs(directory, rank_digits(size), budget());
  HORO_TRY_STATUS(make_directories(directory));
  for (int rank = 0; rank < size; ++rank) HORO_TRY_STATUS(logs.add_rank());
  return logs;
}

Status LogFiles::add_rank() {
  const auto rank = files_.size() / 2;
  files_.resize(files_.size() + 2);
  return open_rank(rank);
}

Status LogFiles::open_rank(std::size_t rank) {
  const auto folder = fmt::format("{}/rank.{:0{}}", directory_, rank, digits_);
  HORO_TRY_STATUS(make_directories(folder));
  for (const std::size_t stream : {0U, 1U}) {
    const auto path = fmt::format("{}/{}", folder, stream == 0 ? "stdout" : "stderr");
    const int fd = open_file(path, O_CREAT | O_TRUNC);
    if (fd < 0 && errno == ENXIO) {
      return fail(Errc::unavailable,
                  "the output file '{}' is a pipe that nothing reads; start its reader first",
                  path);
    }
    if (fd < 0) return fail_errno(errno, fmt::format("opening the output file '{}'", path));
    auto& file = files_[2 * rank + stream];
    file.path = path;
    if (open_ < most_open_) {
      file.fd = fd;
      ++open_;
    } else {
      close(fd);
    }
  }
  return {};
}

LogFiles& LogFiles::operator=(LogFiles&& other) noexcept {
  directory_.swap(other.directory_);
  std::swap(digits_, other.digits_);
  std::swap(most_open_, other.most_open_);
  std::swap(open_, other.open_);
  files_.swap(other.files_);
  std::swap(failed_, other.failed_);
  on_error_.swap(other.on_error_);
  return *this;
}

LogFiles::~LogFiles() {
  for (const auto& file : files_) {
    if (file.fd >= 0) close(file.fd);
  }
}

std::size_t LogFiles::index(Rank rank, Stream stream) {
  return 2 * rank.index() + (stream == Stream::out ? 0 : 1);
}

void LogFiles::complain(const File& file, int error) {
  if (failed_) return;
  failed_ = true;
  auto failure = fail_errno(error, fmt::format("output file '{}'", file.path));
  if (on_error_) on_error_(std::move(failure).take());
}

void LogFiles::close_rank(Rank rank) {
  for (const auto stream : {Stream::out, Stream::err}) {
    auto& file = files_[index(rank, stream)];
    if (file.fd < 0) continue;
    close(std::exchange(file.fd, -1));
    --open_;
  }
}

void LogFiles::write(Rank rank, Stream stream, std::string_view bytes) {
  const auto& file = files_[index(rank, stream)];
  if (file.path.empty()) return;
  const int fd = file.fd >= 0 ? file.fd : open_file(file.path, 0);
  if (fd < 0) {
    complain(file, errno);
    return;
  }
  while (!bytes.empty()) {
    const auto n = ::write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      complain(file, errno);
      break;
    }
  }
  if (file.fd < 0) close(fd);
}

}  // namespace horo::launcher
