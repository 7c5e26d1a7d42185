// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_descriptors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace horo::launcher {

namespace {

constexpr std::array kNumbers{kBoardDescriptor, kTimelineDescriptor};

bool is_ours(int number) {
  return std::ranges::find(kNumbers, number) != kNumbers.end();
}

/// /dev/null, open until the process ends: it is put at a number without taking another one, so
/// that this works when no descriptor is left. -1: not held yet.
int& nothing() {
  static int descriptor = -1;
  return descriptor;
}

int put_nothing_at(int number) {
  int put = -1;
  do {
    put = dup3(nothing(), number, O_CLOEXEC);
  } while (put < 0 && (errno == EINTR || errno == EBUSY));
  return put;
}

}  // namespace

Status hold_rank_descriptors(const std::vector<int>& in_use) {
  int held = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (held >= 0 && is_ours(held)) held = fcntl(held, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (held < 0) return fail_errno(errno, "opening /dev/null for the descriptors of the ranks");
  nothing() = held;
  for (const int number : kNumbers) {
    if (std::ranges::find(in_use, number) != in_use.end()) {
      return fail(Errc::unavailable,
                  "descriptor {} belongs to the program that started horo-agent, but ranks get "
                  "their board there; start it with fewer open descriptors",
                  number);
    }
    // A descriptor that this process has inherited there is of no use to it.
    if (put_nothing_at(number) >= 0) continue;
    if (errno != EBADF) return fail_errno(errno, "holding the descriptors of the ranks");
    // Without the timeline's descriptor, ranks run and record nothing.
    if (number == kTimelineDescriptor) continue;
    return fail(Errc::unavailable, "the limit of descriptors is below {}; raise ulimit -Hn",
                number + 1);
  }
  return {};
}

void clear_rank_descriptors() {
  // In one step, so that no thread gets the number in between.
  for (const int number : kNumbers) put_nothing_at(number);
}

}  // namespace horo::launcher
