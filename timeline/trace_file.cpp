// SPDX-License-Identifier: Apache-2.0
#include "timeline/trace_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace horo::timeline {

namespace {

constexpr std::string_view kClose = "\n]\n";

}  // namespace

Result<TraceFile> TraceFile::create(const std::string& path, std::string_view head) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) return fail_errno(errno, path);
  TraceFile file(std::move(fd), path);
  HORO_TRY_STATUS(file.write_at(0, fmt::format("[\n{}{}", head, kClose)));
  file.end_ = 2 + head.size();
  return file;
}

Status TraceFile::append(std::string_view elements) {
  if (elements.empty()) return {};
  auto written = write_at(end_, fmt::format(",\n{}{}", elements, kClose));
  if (written) {
    end_ += 2 + elements.size();
    return {};
  }
  // These bytes are the file's already: they can be had on a full disk too.
  if (auto restored = write_at(end_, kClose); !restored) return restored;
  if (ftruncate(fd_.value(), static_cast<off_t>(end_ + kClose.size())) != 0)
    return fail_errno(errno, path_);
  return written;
}

Status TraceFile::write_at(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto put = pwrite(fd_.value(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return fail_errno(put < 0 ? errno : ENOSPC, path_);
    offset += static_cast<std::uint64_t>(put);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

}  // namespace horo::timeline
