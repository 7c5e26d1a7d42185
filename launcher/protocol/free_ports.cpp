// SPDX-License-Identifier: Apache-2.0
#include "launcher/protocol/free_ports.hpp"

#include <cerrno>
#include <cstdint>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

namespace horo::launcher {

namespace {

constexpr int kFirst = 10'000;
constexpr int kLast = 32'767;  // The kernel's own range begins at 32768 by default.

Result<bool> is_free(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail_errno(errno, "looking for free TCP ports");
  const int yes = 1;  // A port in TIME_WAIT is usable: the frameworks set this option too.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return bound;
}

}  // namespace

Result<std::vector<int>> free_ports(int count) {
  std::uint32_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random)
    return fail_errno(errno, "drawing a random port");
  constexpr int kRange = kLast - kFirst + 1;
  std::vector<int> ports;
  for (int i = 0; i < kRange && static_cast<int>(ports.size()) < count; ++i) {
    const int port = kFirst + (static_cast<int>(random % kRange) + i) % kRange;
    HORO_TRY(const bool is_usable, is_free(port));
    if (is_usable) ports.push_back(port);
  }
  if (static_cast<int>(ports.size()) < count) {
    return fail(Errc::unavailable, "{} free TCP ports wanted between {} and {}, {} found", count,
                kFirst, kLast, ports.size());
  }
  return ports;
}

}  // namespace horo::launcher
