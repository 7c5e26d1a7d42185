// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_channel.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <system_error>

namespace horo::runtime {

namespace {

constexpr const char* kEnded = "its connection has ended";
constexpr const char* kEndedInside = "its connection has ended in the middle of a message";

std::string text_of(int error) {
  return std::generic_category().message(error);
}

/// A socket that connects, or -1 with errno.
int begin_to_connect(const kv::Address& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) !=
      0) {
    errno = EADDRNOTAVAIL;
    return -1;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> entry(found, &freeaddrinfo);
  UniqueFd socket(
      ::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket) return -1;
  const int on = 1;
  setsockopt(socket.value(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket.value(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (::connect(socket.value(), entry->ai_addr, entry->ai_addrlen) != 0 && errno != EINPROGRESS)
    return -1;
  return socket.release();
}

/// Whether the process or the machine lacks something that it may have at the next try.
bool may_pass(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

// -- Making the connection ----------------------------------------------------------------------

void TcpChannel::connect(const kv::Address& address, TcpHandshake handshake) {
  ++tries_;
  address_ = address;
  handshake_.emplace(std::move(handshake));
  connected_ = readable_ = writable_ = ending_ = false;
  socket_ = UniqueFd(begin_to_connect(address));
  const int error = errno;
  state_ = State::connecting;
  if (socket_) return;
  if (may_pass(error)) return fail_to_connect(text_of(error) + "; raise ulimit -n");
  lose(fmt::format("connecting to {}: {}", kv::to_string(address), text_of(error)));
}

void TcpChannel::adopt(UniqueFd socket) {
  if (state_ != State::none) return;  // The peer connects once; a second one is not its.
  socket_ = std::move(socket);
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
  handshake_.reset();
  state_ = State::open;
  readable_ = writable_ = true;
  ++moves_;
}

void TcpChannel::fail_to_connect(std::string why) {
  why_ = fmt::format("connecting to {}: {}", kv::to_string(address_), why);
  state_ = State::none;
}

void TcpChannel::lose(std::string why) {
  if (state_ == State::lost) return;
  state_ = State::lost;
  why_ = std::move(why);
}

void TcpChannel::lose_errno(int error) {
  lose(error == EPIPE || error == ECONNRESET ? kEnded : text_of(error));
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
    std::array<iovec, 2> pieces{};
    std::size_t count = 0;
    auto skip = transfer.moved;
    if (skip < kTcpHeaderBytes) {
      pieces[count++] = {transfer.header.data() + skip, kTcpHeaderBytes - skip};
      skip = 0;
    } else {
      skip -= kTcpHeaderBytes;
    }
    pieces[count++] = {transfer.message.at + skip, transfer.message.bytes - skip};
    const msghdr what{.msg_iov = pieces.data(), .msg_iovlen = count};
    const auto n = sendmsg(socket_.value(), &what, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) return lose_errno(errno);
    if (n < 0) {
      writable_ = false;
      return;
    }
    ++moves_;
    transfer.moved += static_cast<std::uint64_t>(n);
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
  std::array<iovec, 2> pieces{};
  std::size_t count = 0;
  const auto before = transfer.moved;
  auto skip = before;
  if (skip < kTcpHeaderBytes) {
    pieces[count++] = {came_.data() + skip, kTcpHeaderBytes - skip};
    skip = 0;
  } else {
    skip -= kTcpHeaderBytes;
  }
  pieces[count++] = {transfer.message.at + skip, transfer.message.bytes - skip};
  const auto n = readv(socket_.value(), pieces.data(), static_cast<int>(count));
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && errno == EAGAIN) return readable_ = false;
  if (n <= 0) {
    if (n < 0 && errno != ECONNRESET) {
      lose_errno(errno);
    } else {
      lose(before == 0 ? kEnded : kEndedInside);
    }
    return false;
  }
  ++moves_;
  transfer.moved += static_cast<std::uint64_t>(n);
  if (before < kTcpHeaderBytes && transfer.moved >= kTcpHeaderBytes && !check_header(transfer))
    return false;
  if (transfer.done()) {
    receives_.pop_front();
    return true;
  }
  // A short read has emptied the socket; the next bytes cause another event.
  if (!ending_) readable_ = false;
  return readable_;
}

bool TcpChannel::check_header(TcpTransfer& transfer) {
  if (came_ == transfer.header) return true;
  transfer.moved = 0;  // So that what has come does not count as the message.
  lose(
      "it sends another message than the one that is due; see whether all ranks run the same "
      "program");
  return false;
}

}  // namespace horo::runtime
