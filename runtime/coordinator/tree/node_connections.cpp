// SPDX-License-Identifier: Apache-2.0
// What a node does with its sockets. The lock is held.
#include <algorithm>
#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/kv/socket.hpp"
#include "base/log.hpp"
#include "runtime/coordinator/tree/connection.hpp"

namespace horo::runtime::tree {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

constexpr std::size_t kMostStrangers = 64;
constexpr Duration kHandshakeTime = 5s;

TimePoint now() {
  return SteadyClock::instance().now();
}

}  // namespace

Status Node::connect_parent(const Deadline& deadline) {
  HORO_TRY(
      auto socket,
      kv::Socket::connect(params_.parent, deadline)
          .context(fmt::format("connecting to the leader of host '{}' at {}",
                               params_.hosts[static_cast<std::size_t>(leader_.place().parent)].name,
                               kv::to_string(params_.parent))));
  HORO_TRY(const auto nonce, kv::make_nonce());
  connections_.push_back(std::make_unique<Connection>(
      UniqueFd(socket.release()), Channel(Channel::Side::connects, key_, nonce, params_.version),
      now()));
  connections_.back()->to_parent = true;
  parent_ = true;
  write(*connections_.back());
  return {};
}

void Node::accept_all() {
  for (;;) {
    UniqueFd socket(
        accept4(listener_.socket.value(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    const int on = 1;  // Frames are small, and somebody waits for each.
    setsockopt(socket.value(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const auto strangers = std::count_if(connections_.begin(), connections_.end(),
                                         [](const auto& c) { return !c->channel.open(); });
    const auto nonce = kv::make_nonce();
    if (!nonce || strangers >= static_cast<std::ptrdiff_t>(kMostStrangers)) continue;
    connections_.push_back(std::make_unique<Connection>(
        std::move(socket), Channel(Channel::Side::accepts, key_, *nonce, params_.version), now()));
  }
}

void Node::read(Connection& connection) {
  std::array<std::uint8_t, 64 << 10> buffer;  // NOLINT: filled by recv
  while (!connection.dead) {
    const auto room = std::min(buffer.size(), connection.channel.room());
    const auto n = recv(connection.socket.value(), buffer.data(), room, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      drop(connection, {.code = Errc::peer_lost, .message = "the connection has ended"});
      return;
    }
    connection.channel.feed({buffer.data(), static_cast<std::size_t>(n)});
    for (;;) {
      auto payload = connection.channel.next();
      if (!payload) {
        write(connection);  // A peer of another version is told ours.
        drop(connection, payload.error());
        return;
      }
      if (connection.channel.open() && !std::exchange(connection.greeted, true)) {
        connection.channel.send(leader_.hello());
        write(connection);  // Before the other side's is looked at: it is to say why, too.
      }
      if (!payload->has_value()) break;
      take(connection, **payload);
      if (connection.dead) return;
    }
    if (static_cast<std::size_t>(n) < room) return;
  }
}

void Node::take(Connection& connection, const std::string& payload) {
  if (connection.link) {
    leader_.on_frame(*connection.link, as_bytes(payload), now());
    return;
  }
  const auto link = leader_.greet(as_bytes(payload), now());
  if (!link) {
    drop(connection, link.error());
    return;
  }
  connection.link = *link;
  by_link_[*link] = &connection;
}

void Node::send(std::size_t link, std::string payload) {
  auto* connection = by_link_[link];
  if (connection != nullptr && !connection->dead) connection->channel.send(payload);
}

void Node::write(Connection& connection) {
  while (!connection.dead && !connection.channel.output().empty()) {
    const auto output = connection.channel.output();
    const auto n = ::send(connection.socket.value(), output.data(), output.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      connection.channel.sent(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      drop(connection, {.code = Errc::peer_lost, .message = "the connection has ended"});
    }
  }
}

void Node::flush() {
  // Dropping a connection may make the leader speak on others.
  for (bool again = true; again;) {
    again = false;
    for (const auto& connection : connections_) {
      if (connection->dead || connection->channel.output().empty()) continue;
      const auto before = connection->channel.output().size();
      write(*connection);
      again = again || connection->dead || connection->channel.output().size() < before;
    }
  }
}

bool Node::has_output() const {
  return std::any_of(connections_.begin(), connections_.end(), [](const auto& connection) {
    return !connection->dead && connection->link && !connection->channel.output().empty();
  });
}

void Node::drop(Connection& connection, const Error& why) {
  if (std::exchange(connection.dead, true)) return;
  if (connection.to_parent) parent_ = false;
  if (connection.link) {
    by_link_[*connection.link] = nullptr;
    leader_.on_closed(*connection.link, now());
    if (!leaving_) log::debug("tree", "{}", why.message);
  } else if (why.code != Errc::peer_lost || refusal_.code == Errc::ok) {
    refusal_ = why;
  }
}

void Node::sweep() {
  for (const auto& connection : connections_) {
    if (!connection->link && now() > connection->made + kHandshakeTime)
      drop(*connection, {.code = Errc::timed_out, .message = "a handshake took too long"});
  }
  std::erase_if(connections_, [](const auto& connection) { return connection->dead; });
}

}  // namespace horo::runtime::tree
