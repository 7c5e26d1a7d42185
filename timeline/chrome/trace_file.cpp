// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome/trace_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace horo::timeline {

namespace {

constexpr std::string_view kClose = "\n]\n";
constexpr std::string_view kComma = ",\n";

bool is_plain(int fd) {
  struct stat status {};

  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Result<TraceFile> TraceFile::create(const std::string& path, std::string_view head) {
  // O_NONBLOCK: opening a FIFO would otherwise wait for its reader.
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!fd && errno != ENXIO) return fail_errno(errno, path);
  if (!fd || !is_plain(fd.value())) {
    return fail(Errc::invalid_argument,
                "{} is not a regular file; a trace can be written only to a regular file", path);
  }
  // A file system without locks is accepted.
  if (flock(fd.value(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return fail(Errc::unavailable,
                "{} is being written by another job; choose another file for this job", path);
  }
  if (ftruncate(fd.value(), 0) != 0) return fail_errno(errno, path);
  TraceFile file(std::move(fd), path);
  HORO_TRY_STATUS(file.write_at(0, {"[\n", head, kClose}));
  file.end_ = 2 + head.size();
  return file;
}

Status TraceFile::append(std::string_view elements) {
  if (elements.empty()) return {};
  auto written = write_at(end_, {kComma, elements, kClose});
  if (written) {
    end_ += kComma.size() + elements.size();
    return {};
  }
  // The file already has these bytes, so that writing them needs no free space.
  if (auto restored = write_at(end_, {kClose}); !restored) return restored;
  if (ftruncate(fd_.value(), static_cast<off_t>(end_ + kClose.size())) != 0)
    return fail_errno(errno, path_);
  return written;
}

Status TraceFile::write_at(std::uint64_t offset, std::initializer_list<std::string_view> parts) {
  std::array<iovec, 3> rest{};
  std::size_t count = 0;
  // iovec lacks const, but pwritev() does not change the bytes.
  for (const auto part : parts) rest.at(count++) = {const_cast<char*>(part.data()), part.size()};
  for (std::size_t first = 0; first < count;) {
    const auto put = pwritev(fd_.value(), &rest.at(first), static_cast<int>(count - first),
                             static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return fail_errno(put < 0 ? errno : ENOSPC, path_);
    offset += static_cast<std::uint64_t>(put);
    for (auto left = static_cast<std::size_t>(put); first < count;) {
      auto& part = rest.at(first);
      const auto taken = std::min(left, part.iov_len);
      part = {static_cast<char*>(part.iov_base) + taken, part.iov_len - taken};
      left -= taken;
      if (part.iov_len != 0) break;
      ++first;
    }
  }
  return {};
}

}  // namespace horo::timeline
