// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/connections/leader_connections.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <thread>

#include "base/kv/descriptor_limit.hpp"
#include "base/kv/socket.hpp"
#include "base/log.hpp"

namespace horo::runtime::tree {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

constexpr std::size_t kMostInHandshake = 64;
constexpr Duration kHandshakeTime = 5s;
constexpr Duration kRefusedAccept = 10ms;

TimePoint steady_now() {
  return SteadyClock::instance().now();
}

int links_of(const LeaderServiceParams& params) {
  const auto place =
      place_of(params.leader.host, static_cast<int>(params.hosts.size()), params.leader.radix);
  return static_cast<int>(place.children.size()) + 1;
}

}  // namespace

LeaderConnections::LeaderConnections(const LeaderServiceParams& params, Leader& leader,
                                     LeaderListener listener)
    : params_(params),
      leader_(leader),
      key_(channel_key(params.secret, params.leader.epoch)),
      listener_(std::move(listener)),
      by_link_(static_cast<std::size_t>(links_of(params))) {}

// -- Making connections -------------------------------------------------------------------------

Status LeaderConnections::connect_parent(const Deadline& deadline) {
  const auto& parent = params_.hosts[static_cast<std::size_t>(leader_.place().parent)];
  HORO_TRY(auto socket, kv::Socket::connect(params_.parent, deadline)
                            .context(fmt::format("connecting to the leader of host '{}' at {}",
                                                 parent.name, kv::to_string(params_.parent))));
  HORO_TRY(const auto nonce, kv::make_nonce());
  connections_.push_back(
      std::make_unique<Connection>(UniqueFd(socket.release()),
                                   SealedChannel(SealedChannel::Side::connects, key_, nonce,
                                                 params_.version, params_.encryption),
                                   steady_now()));
  parent_ = connections_.back().get();
  write(*connections_.back());
  return {};
}

void LeaderConnections::accept_all() {
  for (;;) {
    UniqueFd socket(
        accept4(listener_.socket.value(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      const int error = errno;
      if (error == EINTR || error == ECONNABORTED) continue;
      if (error == EAGAIN || (error == EMFILE && kv::raise_descriptor_limit())) return;
      // The connection that cannot be taken stays first in the queue. This is a start, which may
      // sleep for a moment instead of asking again at once.
      std::this_thread::sleep_for(kRefusedAccept);
      return;
    }
    const int on = 1;  // Frames are small, and a host waits for each.
    setsockopt(socket.value(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const auto unknown = std::count_if(connections_.begin(), connections_.end(),
                                       [](const auto& c) { return !c->channel.open(); });
    const auto nonce = kv::make_nonce();
    if (!nonce || unknown >= static_cast<std::ptrdiff_t>(kMostInHandshake)) continue;
    connections_.push_back(
        std::make_unique<Connection>(std::move(socket),
                                     SealedChannel(SealedChannel::Side::accepts, key_, *nonce,
                                                   params_.version, params_.encryption),
                                     steady_now()));
  }
}

LinkFacts LeaderConnections::links() const {
  LinkFacts slowest;
  for (const auto& connection : connections_)
    slowest = slower(slowest, facts_of(connection->socket.value()));
  return slowest;
}

// -- Events -------------------------------------------------------------------------------------

void LeaderConnections::add_to(std::vector<pollfd>& entries) const {
  entries.push_back({.fd = listener_.socket.value(), .events = POLLIN, .revents = 0});
  for (const auto& connection : connections_) {
    const auto writes = connection->channel.output().empty() ? 0 : POLLOUT;
    entries.push_back({.fd = connection->socket.value(),
                       .events = static_cast<short>(POLLIN | writes),
                       .revents = 0});
  }
}

void LeaderConnections::handle(const pollfd* first, std::size_t count) {
  // Since add_to() connections were only added, at the end; sweep() alone removes some.
  for (std::size_t i = 1; i < count; ++i) {
    auto& connection = *connections_[i - 1];
    if ((first[i].revents & POLLOUT) != 0) write(connection);
    if ((first[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read(connection);
  }
  if ((first->revents & POLLIN) != 0) accept_all();
  flush();
  sweep();
}

void LeaderConnections::read(Connection& connection) {
  std::array<std::uint8_t, 64 << 10> buffer;  // NOLINT: filled by recv
  while (connection.state != State::dead) {
    const auto room = std::min(buffer.size(), connection.channel.room());
    const auto n = recv(connection.socket.value(), buffer.data(), room, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      drop(connection, {.code = Errc::peer_lost, .message = "the connection has ended"});
      return;
    }
    connection.channel.feed({buffer.data(), static_cast<std::size_t>(n)});
    take_payloads(connection);
    if (static_cast<std::size_t>(n) < room) return;
  }
}

void LeaderConnections::take_payloads(Connection& connection) {
  while (connection.state != State::dead) {
    const auto payload = connection.channel.next();
    if (!payload) {
      write(connection);  // A peer of another version is told ours.
      drop(connection, payload.error());
      return;
    }
    if (connection.channel.open() && connection.state == State::handshake) {
      connection.state = State::greeted;
      connection.channel.send(leader_.hello());
      write(connection);  // Before the peer's hello is checked, so that the peer can check ours.
    }
    if (!payload->has_value()) return;
    take(connection, **payload);
  }
}

void LeaderConnections::take(Connection& connection, const std::string& payload) {
  if (connection.state == State::linked) {
    leader_.on_frame(connection.link, as_bytes(payload), steady_now());
    return;
  }
  const auto link = leader_.greet(as_bytes(payload), steady_now());
  if (!link) {
    drop(connection, link.error());
    return;
  }
  // A write that failed may have dropped the connection.
  if (connection.state == State::dead) return leader_.on_closed(*link, steady_now());
  connection.state = State::linked;
  connection.link = *link;
  by_link_[*link] = &connection;
}

// -- Output -------------------------------------------------------------------------------------

void LeaderConnections::send(std::size_t link, std::string payload) {
  auto* const connection = by_link_[link];
  if (connection != nullptr && connection->state != State::dead) connection->channel.send(payload);
}

void LeaderConnections::write(Connection& connection) {
  while (connection.state != State::dead && !connection.channel.output().empty()) {
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

void LeaderConnections::flush() {
  // Dropping a connection may make the leader send on others.
  for (bool again = true; again;) {
    again = false;
    for (const auto& connection : connections_) {
      if (connection->state == State::dead || connection->channel.output().empty()) continue;
      const auto before = connection->channel.output().size();
      write(*connection);
      again =
          again || connection->state == State::dead || connection->channel.output().size() < before;
    }
  }
}

bool LeaderConnections::has_output() const {
  return std::any_of(connections_.begin(), connections_.end(), [](const auto& connection) {
    return connection->state == State::linked && !connection->channel.output().empty();
  });
}

// -- Ends ---------------------------------------------------------------------------------------

void LeaderConnections::drop(Connection& connection, const Error& why) {
  const auto before = std::exchange(connection.state, State::dead);
  if (before == State::dead) return;
  if (parent_ == &connection) parent_ = nullptr;
  if (before == State::linked) {
    by_link_[connection.link] = nullptr;
    leader_.on_closed(connection.link, steady_now());
    log::debug("tree", "{}", why.message);
  } else if (why.code != Errc::peer_lost || refusal_.code == Errc::ok) {
    refusal_ = why;
  }
}

void LeaderConnections::sweep() {
  for (const auto& connection : connections_) {
    if (connection->state != State::linked && steady_now() > connection->made + kHandshakeTime)
      drop(*connection, {.code = Errc::timed_out, .message = "a handshake took too long"});
  }
  std::erase_if(connections_,
                [](const auto& connection) { return connection->state == State::dead; });
}

void LeaderConnections::close_all() {
  parent_ = nullptr;
  connections_.clear();
  std::fill(by_link_.begin(), by_link_.end(), nullptr);
}

}  // namespace horo::runtime::tree
