// SPDX-License-Identifier: Apache-2.0
#include "apps/run/progress_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include "base/text/printable.hpp"

namespace horo::apps {

namespace {

constexpr Duration kPeriod = std::chrono::milliseconds(500);
constexpr std::size_t kUsualWidth = 80;
constexpr std::string_view kErase = "\r\033[K";

/// A line that wraps cannot be rewritten in place.
std::size_t width_of(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualWidth;
  return size.ws_col;
}

void put(int fd, std::string_view text) {
  [[maybe_unused]] const auto written = write(fd, text.data(), text.size());
}

}  // namespace

ProgressLine::ProgressLine(Loop& loop, int fd, std::function<std::string()> text)
    : loop_(loop), fd_(fd), text_(std::move(text)) {
  if (isatty(fd_) == 1) wait();
}

void ProgressLine::wait() {
  timer_ = loop_.after(kPeriod, [this] { show(); });
}

void ProgressLine::show() {
  auto text = printable(text_());
  const auto width = width_of(fd_);
  if (text.size() >= width) text.resize(width - 1);
  put(fd_, std::string(kErase) + text);
  shown_ = true;
  wait();
}

void ProgressLine::end() {
  timer_.reset();
  if (std::exchange(shown_, false)) put(fd_, kErase);
}

}  // namespace horo::apps
