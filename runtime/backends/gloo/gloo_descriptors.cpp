// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/gloo/gloo_descriptors.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace horo::runtime {

namespace {

std::vector<int> open_descriptors() {
  std::vector<int> open;
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return open;
  while (const dirent* const entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != dirfd(folder)) open.push_back(fd);
  }
  closedir(folder);
  std::sort(open.begin(), open.end());
  return open;
}

bool is_network_descriptor(int fd) {
  std::array<char, 64> target{};
  const auto path = "/proc/self/fd/" + std::to_string(fd);
  const auto length = readlink(path.c_str(), target.data(), target.size());
  const std::string_view text(target.data(), length < 0 ? 0 : static_cast<std::size_t>(length));
  return text.substr(0, 8) == "socket:[" || text == "anon_inode:[eventpoll]";
}

}  // namespace

CloseOnExec::CloseOnExec() : before_(open_descriptors()) {}

CloseOnExec::~CloseOnExec() {
  for (const int fd : open_descriptors()) {
    if (std::binary_search(before_.begin(), before_.end(), fd) || !is_network_descriptor(fd))
      continue;
    if (const int flags = fcntl(fd, F_GETFD); flags >= 0) fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  }
}

}  // namespace horo::runtime
