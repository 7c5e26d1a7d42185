// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/terminal_session.hpp"

#include <algorithm>
#include <chrono>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "apps/common/tools.hpp"
#include "base/deadline.hpp"

namespace horo::apps {

namespace {

winsize terminal_size() {
  winsize size{};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  return size;
}

}  // namespace

TerminalSession::TerminalSession() {
  sigset_t mine;
  sigemptyset(&mine);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&mine, number);
  sigprocmask(SIG_BLOCK, &mine, &before_);
  signals_ = UniqueFd(signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK));
  termios now{};
  // A background process must not change the terminal.
  if (isatty(STDOUT_FILENO) == 0 || tcgetpgrp(STDIN_FILENO) != getpgrp() ||
      tcgetattr(STDIN_FILENO, &now) != 0)
    return;
  terminal_ = std::make_unique<termios>(now);
  keys_ = true;
  now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  tcsetattr(STDIN_FILENO, TCSANOW, &now);
}

TerminalSession::~TerminalSession() {
  if (terminal_ != nullptr) tcsetattr(STDIN_FILENO, TCSANOW, terminal_.get());
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

bool TerminalSession::quit_requested() {
  signalfd_siginfo info{};
  if (read(signals_.value(), &info, sizeof info) == sizeof info) {
    signal_ = static_cast<int>(info.ssi_signo);
    return true;
  }
  if (!keys_) return false;
  pollfd key{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  char typed = '\0';
  while (poll(&key, 1, 0) > 0) {
    keys_ = read(STDIN_FILENO, &typed, 1) == 1;
    if (!keys_) return false;
    if (typed == 'q' || typed == 'Q') return true;
  }
  return false;
}

WakeReason TerminalSession::wait(Duration most, std::vector<int> processes) {
  const auto& clock = SteadyClock::instance();
  const auto until = clock.now() + most;
  const bool any = !processes.empty();
  for (;;) {
    if (quit_requested()) return WakeReason::quit;
    std::erase_if(processes, [](int process) {
      pollfd ended{.fd = process, .events = POLLIN, .revents = 0};
      return poll(&ended, 1, 0) != 0;
    });
    if (any && processes.empty()) return WakeReason::ended;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.now()).count();
    if (left <= 0) return WakeReason::due;
    std::vector<pollfd> all{{.fd = signals_.value(), .events = POLLIN, .revents = 0},
                            {.fd = keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
    for (const int process : processes)
      all.push_back({.fd = process, .events = POLLIN, .revents = 0});
    poll(all.data(), all.size(), static_cast<int>(std::min<std::int64_t>(left, 3'600'000)));
  }
}

AlternateScreen::AlternateScreen() {
  write_out("\x1b[?1049h\x1b[?25l");
}

AlternateScreen::~AlternateScreen() {
  write_out("\x1b[?25h\x1b[?1049l");
}

int AlternateScreen::width() const {
  return terminal_size().ws_col;
}

int AlternateScreen::height() const {
  return terminal_size().ws_row;
}

}  // namespace horo::apps
