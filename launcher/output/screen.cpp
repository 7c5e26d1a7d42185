// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/screen.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace horo::launcher {

namespace {

// A pipe that polls writable has a free page. A terminal takes at least the smaller amount.
constexpr std::size_t kCareful = 4096;
constexpr std::size_t kCarefulTerminal = 256;

constexpr auto kRetry = std::chrono::milliseconds(10);

}  // namespace

Screen::Screen(Loop& loop, int fd) : loop_(loop), fd_(fd) {
  struct stat status {};

  if (fstat(fd, &status) != 0) return;
  if (S_ISSOCK(status.st_mode)) {
    method_ = WriteMethod::socket;
  } else if (S_ISFIFO(status.st_mode) || (S_ISCHR(status.st_mode) && isatty(fd) == 1)) {
    own_ = open(fmt::format("/proc/self/fd/{}", fd).c_str(),
                O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    method_ = own_ >= 0 ? WriteMethod::own : WriteMethod::careful;
  }
}

Screen::~Screen() {
  watch_.reset();
  retry_.reset();
  if (own_ >= 0) close(own_);
}

ssize_t Screen::write_some(const char* data, std::size_t size) {
  switch (method_) {
    case WriteMethod::plain:
      return write(fd_, data, size);
    case WriteMethod::own:
      return write(own_, data, size);
    case WriteMethod::socket:
      return send(fd_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    case WriteMethod::careful:
      break;
  }
  pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
  if (poll(&ready, 1, 0) == 0) {
    errno = EAGAIN;
    return -1;
  }
  return write(fd_, data, std::min(size, isatty(fd_) == 1 ? kCarefulTerminal : kCareful));
}

void Screen::flush() {
  if (!watch_ && !retry_) pump();
}

void Screen::pump() {
  while (backlog() > 0) {
    const auto n = write_some(buffer_.data() + written_, backlog());
    if (n >= 0) {
      written_ += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for_room();
      // Moving the rest to the front costs its length, so it happens only after as much was
      // written.
      if (written_ > backlog()) {
        buffer_.erase(0, written_);
        forgotten_ += std::exchange(written_, 0);
      }
      return;
    } else if (errno != EINTR) {
      lose(errno);
    }
  }
  buffer_.clear();
  forgotten_ += std::exchange(written_, 0);
  watch_.reset();
}

void Screen::wait_for_room() {
  if (watch_ || retry_) return;
  const auto again = [this] {
    retry_.reset();
    pump();
    if (on_change_) on_change_();
  };
  auto watch = InheritedWatch::make(loop_, method_ == WriteMethod::own ? own_ : fd_,
                                    Readiness::writable, again);
  if (watch) {
    watch_ = std::move(watch).value();
  } else {  // No descriptor is left to wait with: try again soon.
    retry_ = loop_.after(kRetry, again);
  }
}

void Screen::lose(int error) {
  written_ = buffer_.size();
  if (failed_) return;
  failed_ = true;
  auto failure = fail_errno(error, fd_ == STDOUT_FILENO ? "standard output" : "standard error");
  if (on_error_) on_error_(error, std::move(failure).take());
}

}  // namespace horo::launcher
