// SPDX-License-Identifier: Apache-2.0
#include "base/process/leave_descriptors.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/resource.h>
#include <unistd.h>

namespace horo {

namespace {

/// Linux before 5.9 has no close_range, before 5.11 not for exec, and a container may forbid it.
template <typename Leave>
void each(int first, Leave leave) {
  rlimit most{};
  getrlimit(RLIMIT_NOFILE, &most);
  for (int fd = first; static_cast<rlim_t>(fd) < most.rlim_cur; ++fd) leave(fd);
}

}  // namespace

void close_descriptors(int first) {
  if (close_range(static_cast<unsigned>(first), ~0U, 0) != 0)
    each(first, [](int fd) { close(fd); });
}

void close_descriptors_at_exec(int first) {
  if (close_range(static_cast<unsigned>(first), ~0U, CLOSE_RANGE_CLOEXEC) != 0)
    each(first, [](int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); });
}

}  // namespace horo
