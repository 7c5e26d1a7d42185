// SPDX-License-Identifier: Apache-2.0
#include "base/kv/server/server_connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace horo::kv {

ServerConnection::ServerConnection(ConnectionId connection_id, int descriptor,
                                   ServerSession initial, TimePoint accepted)
    : id(connection_id), fd(descriptor), since(accepted), session(std::move(initial)) {}

ServerConnection::~ServerConnection() {
  watched.reset();
  close(fd);
}

ServerConnection::Progress ServerConnection::read() {
  std::array<std::uint8_t, std::size_t{64} << 10U>
      buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by recv
  const auto room = std::min(session.room(), buffer.size());
  while (true) {
    const auto n = recv(fd, buffer.data(), room, 0);
    if (n > 0) {
      session.feed({buffer.data(), static_cast<std::size_t>(n)});
      return Progress::done;
    }
    if (n < 0 && errno == EINTR) continue;
    return n < 0 && errno == EAGAIN ? Progress::blocked : Progress::closed;
  }
}

ServerConnection::Progress ServerConnection::write() {
  while (session.has_output()) {
    const auto bytes = session.output();
    const auto n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      session.sent(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      return Progress::blocked;
    } else if (errno != EINTR) {
      return Progress::closed;
    }
  }
  return Progress::done;
}

}  // namespace horo::kv
