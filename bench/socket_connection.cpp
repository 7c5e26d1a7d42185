// SPDX-License-Identifier: Apache-2.0
#include "bench/socket_connection.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <linux/errqueue.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

#include "bench/mark_files.hpp"

namespace horo::bench {

namespace {

/// One call sends so much at most. A call of zero_copy pins its pages.
constexpr std::size_t kPiece = std::size_t{1} << 20U;

Result<sockaddr_in> place(const std::string& address, std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &at.sin_addr) == 1) return at;
  return fail(Errc::invalid_argument, "'{}' is not an IPv4 address", address);
}

sockaddr* as_any(sockaddr_in& at) {
  return reinterpret_cast<sockaddr*>(&at);
}

/// "ADDRESS PORT" of the process that listens.
std::string meeting_file(const std::string& directory) {
  return directory + "/socket";
}

Result<UniqueFd> accept_one(const std::string& address, const std::string& directory) {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  HORO_TRY(sockaddr_in at, place(address, 0));
  socklen_t size = sizeof at;
  if (bind(listener.value(), as_any(at), size) != 0 || listen(listener.value(), 1) != 0 ||
      getsockname(listener.value(), as_any(at), &size) != 0)
    return fail_errno(errno, "listening at " + address);
  if (!write_mark(meeting_file(directory), fmt::format("{} {}\n", address, ntohs(at.sin_port))))
    return fail_errno(errno, meeting_file(directory));
  UniqueFd connection(accept4(listener.value(), nullptr, nullptr, SOCK_CLOEXEC));
  if (connection.value() < 0) return fail_errno(errno, "accepting");
  return connection;
}

Result<UniqueFd> connect_to_it(const std::string& directory) {
  std::string address;
  std::uint16_t port = 0;
  for (int tries = 0; tries < 3000; ++tries) {
    std::ifstream file(meeting_file(directory));
    if (file >> address >> port) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  HORO_TRY(sockaddr_in at, place(address, port));
  UniqueFd connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(connection.value(), as_any(at), sizeof at) == 0) return connection;
  return fail_errno(errno, "connecting to " + address);
}

}  // namespace

Result<std::unique_ptr<PeerConnection>> SocketConnection::make(Sending sending,
                                                               const std::string& address,
                                                               const std::string& directory,
                                                               bool listens) {
  HORO_TRY(auto socket, listens ? accept_one(address, directory) : connect_to_it(directory));
  const int on = 1;
  setsockopt(socket.value(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (sending == Sending::zero_copy &&
      setsockopt(socket.value(), SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0)
    return fail_errno(errno, "SO_ZEROCOPY");
  return std::unique_ptr<PeerConnection>(new SocketConnection(std::move(socket), sending));
}

SocketConnection::SocketConnection(UniqueFd socket, Sending sending)
    : socket_(std::move(socket)), sending_(sending) {}

SocketConnection::~SocketConnection() {
  if (sending_ == Sending::zero_copy)
    fmt::print(stderr, "{} of {} calls without a copy were copied by the kernel\n", copied_,
               released_);
}

Status SocketConnection::send(std::span<std::byte> message) {
  const int flags = MSG_NOSIGNAL | (sending_ == Sending::zero_copy ? MSG_ZEROCOPY : 0);
  while (!message.empty()) {
    const auto piece = std::min(message.size(), kPiece);
    const auto sent = ::send(socket_.value(), message.data(), piece, flags);
    if (sent < 0 && errno == ENOBUFS && calls_ > released_) {
      HORO_TRY_STATUS(await_release());
      continue;
    }
    if (sent < 0) return fail_errno(errno, "sending");
    if (sending_ == Sending::zero_copy) ++calls_;
    message = message.subspan(static_cast<std::size_t>(sent));
  }
  while (calls_ > released_) HORO_TRY_STATUS(await_release());
  return {};
}

Status SocketConnection::receive(std::span<std::byte> message) {
  while (!message.empty()) {
    const auto came = recv(socket_.value(), message.data(), message.size(), MSG_WAITALL);
    if (came == 0) return fail(Errc::peer_lost, "the other process has ended");
    if (came < 0) return fail_errno(errno, "receiving");
    message = message.subspan(static_cast<std::size_t>(came));
  }
  return {};
}

Status SocketConnection::await_release() {
  pollfd what{.fd = socket_.value(), .events = 0, .revents = 0};
  if (poll(&what, 1, -1) < 0) return fail_errno(errno, "poll");
  return read_releases();
}

/// Each report releases a range of calls.
Status SocketConnection::read_releases() {
  std::array<char, 256> control{};
  msghdr report{};
  report.msg_control = control.data();
  report.msg_controllen = control.size();
  if (recvmsg(socket_.value(), &report, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
    if (errno == EAGAIN) return {};
    return fail_errno(errno, "reading the error queue");
  }
  for (auto* part = CMSG_FIRSTHDR(&report); part != nullptr; part = CMSG_NXTHDR(&report, part)) {
    const auto* const error = reinterpret_cast<const sock_extended_err*>(CMSG_DATA(part));
    if (error->ee_origin != SO_EE_ORIGIN_ZEROCOPY) continue;
    const std::uint64_t count = error->ee_data - error->ee_info + 1;
    released_ += count;
    if ((error->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0) copied_ += count;
  }
  return {};
}

}  // namespace horo::bench
