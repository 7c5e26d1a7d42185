// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/inherited.hpp"

#include <cerrno>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

namespace horo::launcher {

InheritedWatch::InheritedWatch(InheritedWatch&& other) noexcept
    : epoll_(std::exchange(other.epoll_, -1)), watch_(std::move(other.watch_)) {}

InheritedWatch& InheritedWatch::operator=(InheritedWatch&& other) noexcept {
  if (this != &other) {
    reset();
    epoll_ = std::exchange(other.epoll_, -1);
    watch_ = std::move(other.watch_);
  }
  return *this;
}

InheritedWatch::~InheritedWatch() {
  reset();
}

void InheritedWatch::reset() {
  watch_.reset();
  if (epoll_ >= 0) close(epoll_);
  epoll_ = -1;
}

Result<InheritedWatch> InheritedWatch::make(Loop& loop, int fd, Readiness readiness, Task task) {
  InheritedWatch watch;
  watch.epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (watch.epoll_ < 0) return fail_errno(errno, "waiting for a descriptor");
  epoll_event event{};
  event.events = readiness == Readiness::readable ? EPOLLIN : EPOLLOUT;
  if (epoll_ctl(watch.epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
    if (errno == EPERM) return fail(Errc::unsupported, "descriptor {} is a plain file", fd);
    return fail_errno(errno, fmt::format("waiting for descriptor {}", fd));
  }
  HORO_TRY(watch.watch_, loop.watch(watch.epoll_));
  watch.watch_.on_readable(std::move(task));
  return watch;
}

}  // namespace horo::launcher
