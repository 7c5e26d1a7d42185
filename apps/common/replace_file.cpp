// SPDX-License-Identifier: Apache-2.0
#include "apps/common/replace_file.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.hpp"

namespace horo::apps {

namespace {

constexpr mode_t kAsUmaskSays = 0666;
constexpr mode_t kPermissions = 07777;

/// On failure returns false and sets errno.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto n = write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

Status write_in_place(const std::string& path, std::string_view text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_TRUNC, kAsUmaskSays));
  if (file && write_all(file.value(), text)) return {};
  return fail_errno(errno, path);
}

/// Whether errno says that a second file is impossible: no permission in the folder, or the name
/// would be too long.
bool is_for_itself(int why) {
  return why == EACCES || why == EPERM || why == EROFS || why == ENAMETOOLONG;
}

/// `mode` 0: as the umask says. Some file systems report a full disk only at close().
bool write_fresh(const std::string& path, mode_t mode, std::string_view text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, kAsUmaskSays));
  if (!file) return false;
  if (write_all(file.value(), text) && fsync(file.value()) == 0 &&
      (mode == 0 || fchmod(file.value(), mode) == 0))
    return true;
  const int why = errno;
  unlink(path.c_str());
  errno = why;
  return false;
}

}  // namespace

Status replace_file(const std::string& path, std::string_view text) {
  struct stat known {};

  const bool there = stat(path.c_str(), &known) == 0;
  std::error_code error;
  const bool leads_nowhere = !there && std::filesystem::is_symlink(path, error);
  if (leads_nowhere || (there && !S_ISREG(known.st_mode))) return write_in_place(path, text);
  error.clear();
  const auto target = there ? std::filesystem::canonical(path, error).string() : path;
  if (error) return fail_errno(error.value(), path);
  const auto beside = fmt::format("{}.{}.part", target, getpid());
  if (!write_fresh(beside, there ? known.st_mode & kPermissions : 0, text)) {
    if (is_for_itself(errno)) return write_in_place(path, text);
    return fail_errno(errno, path);
  }
  if (rename(beside.c_str(), target.c_str()) == 0) return {};
  const int why = errno;
  unlink(beside.c_str());
  return fail_errno(why, path);
}

}  // namespace horo::apps
