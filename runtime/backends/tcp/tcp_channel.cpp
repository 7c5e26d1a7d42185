// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_channel.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <system_error>

#include "base/kv/descriptor_limit.hpp"

namespace horo::runtime {

namespace {

constexpr const char* kEnded = "its connection has ended";
constexpr const char* kEndedInside = "its connection has ended in the middle of a message";

std::string text_of(int error) {
  return std::generic_category().message(error);
}

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Null where `address` is no number.
AddressInfo info_of(const kv::Address& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) != 0)
    found = nullptr;
  return {found, &freeaddrinfo};
}

/// The connection leaves from this address. False: it cannot, with errno.
bool bind_to(int socket, const std::string& from) {
  if (from.empty()) return true;
  const int on = 1;  // The port is chosen when the peer is known.
  setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  const auto own = info_of({from, 0});
  if (own != nullptr) return bind(socket, own->ai_addr, own->ai_addrlen) == 0;
  errno = EADDRNOTAVAIL;
  return false;
}

/// A socket that connects, or -1 with errno.
int begin_to_connect(const kv::Address& address, const std::string& from) {
  const auto entry = info_of(address);
  if (entry == nullptr) {
    errno = EADDRNOTAVAIL;
    return -1;
  }
  UniqueFd socket(
      ::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket) return -1;
  const int on = 1;
  setsockopt(socket.value(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket.value(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (!bind_to(socket.value(), from)) return -1;
  if (::connect(socket.value(), entry->ai_addr, entry->ai_addrlen) != 0 && errno != EINPROGRESS)
    return -1;
  return socket.release();
}

/// "HOST:PORT" of one side, by getpeername() or getsockname().
std::string address_by(int (*name_of)(int, sockaddr*, socklen_t*), int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  if (name_of(socket, at, &size) != 0 ||
      getnameinfo(at, size, host.data(), host.size(), port.data(), port.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return kv::to_string({host.data(), static_cast<std::uint16_t>(std::atoi(port.data()))});
}

/// Whether the process or the machine lacks something that it may have at the next try.
bool may_pass(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

// -- Making the connection ----------------------------------------------------------------------

void TcpChannel::connect(const kv::Address& address, TcpHandshake handshake,
                         const std::string& from) {
  ++tries_;
  address_ = address;
  handshake_.emplace(std::move(handshake));
  connected_ = readable_ = writable_ = ending_ = false;
  socket_ = UniqueFd(begin_to_connect(address, from));
  if (!socket_ && errno == EMFILE && kv::raise_descriptor_limit())
    socket_ = UniqueFd(begin_to_connect(address, from));
  const int error = errno;
  state_ = State::connecting;
  if (socket_) return;
  if (error == EMFILE)
    return fail_to_connect(text_of(error) + "; " + kv::describe_descriptor_limit());
  if (may_pass(error)) return fail_to_connect(text_of(error));
  lose(fmt::format("connecting to {}: {}", kv::to_string(address), text_of(error)));
}

void TcpChannel::adopt(ProvenSocket socket) {
  if (state_ != State::none) return;  // The peer connects once; a second one is not its.
  socket_ = std::move(socket.socket);
  wire_ = std::move(socket.wire);
  state_ = State::open;
  readable_ = writable_ = true;
  ++moves_;
}

void TcpChannel::advance_connecting() {
  if (!connected_) {
    if (!writable_) return;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket_.value(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0)
      return lose(fmt::format("connecting to {}: {}", kv::to_string(address_), text_of(error)));
    connected_ = true;
    readable_ = true;
    ++moves_;
  }
  shake_hands();
}

void TcpChannel::shake_hands() {
  auto& handshake = *handshake_;
  for (;;) {
    if (const auto output = handshake.output(); !output.empty()) {
      const auto n = send(socket_.value(), output.data(), output.size(), MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return fail_to_connect(text_of(errno));
      if (n < 0 && errno == EAGAIN) return;
      if (n > 0) handshake.sent(static_cast<std::size_t>(n));
      continue;
    }
    if (handshake.open()) break;
    std::array<std::uint8_t, 128> buffer;  // NOLINT: filled by recv
    const auto n =
        recv(socket_.value(), buffer.data(), std::min(buffer.size(), handshake.room()), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return fail_to_connect(text_of(errno));
    if (n == 0) return fail_to_connect(kEnded);
    if (const auto status = handshake.feed({buffer.data(), static_cast<std::size_t>(n)}); !status)
      return lose(fmt::format("at {}: {}", kv::to_string(address_), status.error().message));
  }
  auto wire = wire_after(handshake);
  if (!wire) return lose(wire.error().message);
  wire_ = std::move(*wire);
  handshake_.reset();
  state_ = State::open;
  readable_ = writable_ = true;
  ++moves_;
}

void TcpChannel::fail_to_connect(std::string why) {
  why_ = fmt::format("connecting to {}: {}", kv::to_string(address_), why);
  state_ = State::none;
}

std::string TcpChannel::describe_try() const {
  return fmt::format("a connection from {} to {}", address_by(&getsockname, socket_.value()),
                     kv::to_string(address_));
}

void TcpChannel::lose(std::string why) {
  if (state_ == State::lost) return;
  state_ = State::lost;
  why_ = std::move(why);
}

void TcpChannel::lose_errno(int error) {
  lose(error == EPIPE || error == ECONNRESET ? kEnded : text_of(error));
}

void TcpChannel::lose_changed() {
  lose(
      fmt::format("what came from {} was changed, cut, repeated or left out on its way; the "
                  "connection is encrypted, so this was an attack or a fault of the network",
                  address_by(&getpeername, socket_.value())));
}

// -- Messages -----------------------------------------------------------------------------------

void TcpChannel::note_events(std::uint32_t events) {
  const bool ends = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  ending_ = ending_ || ends;
  readable_ = readable_ || ends || (events & EPOLLIN) != 0;
  writable_ = writable_ || ends || (events & EPOLLOUT) != 0;
}

void TcpChannel::post_send(TcpTransfer& transfer) {
  sends_.push_back(&transfer);
  if (state_ == State::open && sends_.size() == 1) write_all();
}

void TcpChannel::advance() {
  if (state_ == State::connecting) advance_connecting();
  if (state_ == State::open) write_all();
  if (state_ == State::open) read_all();
}

void TcpChannel::write_all() {
  while (writable_ && !sends_.empty()) {
    auto& transfer = *sends_.front();
    const auto move = wire_->write(socket_.value(), transfer);
    if (move.error == EINTR) continue;
    if (move.error != 0 && move.error != EAGAIN) return lose_errno(move.error);
    if (move.error != 0) {
      writable_ = false;
      return;
    }
    ++moves_;
    if (transfer.done()) sends_.pop_front();
  }
}

void TcpChannel::read_all() {
  while (readable_ && !receives_.empty() && state_ == State::open) {
    if (!read_some(*receives_.front())) return;
  }
}

/// False: nothing is left to read now.
bool TcpChannel::read_some(TcpTransfer& transfer) {
  const auto before = transfer.moved;
  const bool begun = wire_->has_begun(transfer);
  const auto move = wire_->read(socket_.value(), transfer);
  if (move.error == EINTR) return true;
  if (move.error == EAGAIN) return readable_ = false;
  if (move.error == EBADMSG) return lose_changed(), false;
  if (move.error != 0 && move.error != ECONNRESET) return lose_errno(move.error), false;
  if (move.bytes <= 0) {
    lose(begun ? kEndedInside : kEnded);
    return false;
  }
  ++moves_;
  if (before < kTcpHeaderBytes && transfer.moved >= kTcpHeaderBytes && !check_header(transfer))
    return false;
  if (transfer.done()) {
    receives_.pop_front();
    return true;
  }
  // A short read has emptied the socket; the next bytes cause another event.
  if (!ending_ && !move.all) readable_ = false;
  return readable_;
}

bool TcpChannel::check_header(TcpTransfer& transfer) {
  if (wire_->header() == transfer.header) return true;
  transfer.moved = 0;  // So that what has come does not count as the message.
  lose(
      "it sends another message than the one that is due; see whether all ranks run the same "
      "program");
  return false;
}

}  // namespace horo::runtime
