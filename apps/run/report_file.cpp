// SPDX-License-Identifier: Apache-2.0
#include "apps/run/report_file.hpp"

#include <cerrno>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "base/log.hpp"
#include "base/output_file.hpp"

namespace horo::apps {

Result<ReportFile> ReportFile::open(const std::string& path) {
  ReportFile file;
  if (path.empty()) return file;
  file.path_ = path;
  HORO_TRY(auto opened, open_output_file("report", path));
  file.fd_ = opened.release();
  return file;
}

ReportFile::ReportFile(ReportFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

ReportFile& ReportFile::operator=(ReportFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

ReportFile::~ReportFile() {
  if (fd_ >= 0) close(fd_);
}

void ReportFile::write(const std::function<std::string()>& text) const {
  if (fd_ < 0) return;
  const auto content = text();
  // Removes the report of an earlier generation. A pipe or terminal cannot seek.
  if (lseek(fd_, 0, SEEK_SET) == 0) {
    [[maybe_unused]] const int emptied = ftruncate(fd_, 0);
  }
  for (std::string_view rest = content; !rest.empty();) {
    const auto n = ::write(fd_, rest.data(), rest.size());
    if (n >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      const auto error = fail_errno(errno, fmt::format("report file '{}'", path_)).take();
      log::error("run", "{}", error.message);
      return;
    }
  }
}

}  // namespace horo::apps
