// SPDX-License-Identifier: Apache-2.0
#include "launcher/run/stdin_pump.hpp"

#include <array>
#include <cerrno>
#include <unistd.h>

namespace horo::launcher {

void StdinPump::start() {
  driver_.on_stdin_room([this] { wait(); });
  wait();
}

void StdinPump::wait() {
  auto watch = InheritedWatch::make(loop_, fd_, Readiness::readable, [this] {
    watch_.reset();
    read_block();
  });
  if (watch) {
    watch_ = std::move(watch).value();
  } else {
    read_block();  // epoll refuses plain files, which are always ready.
  }
}

void StdinPump::read_block() {
  std::array<char, 32 * 1024> block{};
  const auto n = read(fd_, block.data(), block.size());
  if (n > 0) {
    driver_.feed_stdin({block.data(), static_cast<std::size_t>(n)});
  } else if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
    wait();
  } else {
    driver_.close_stdin();
  }
}

}  // namespace horo::launcher
