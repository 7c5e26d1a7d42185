// SPDX-License-Identifier: Apache-2.0
#include "base/kv/socket.hpp"

#include <array>
#include <cerrno>
#include <ctime>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace horo::kv {

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> resolve(const Address& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int code =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (code != 0) {
    return fail(Errc::not_found, "host '{}' cannot be resolved: {}", address.host,
                code == EAI_SYSTEM ? std::generic_category().message(errno) : gai_strerror(code));
  }
  return AddressList(list, &freeaddrinfo);
}

std::string number_of(const sockaddr_storage& storage, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, text.data(), text.size(),
                  nullptr, 0, NI_NUMERICHOST) != 0)
    return "";
  const std::string_view number(text.data());
  constexpr std::string_view kMapped = "::ffff:";  // An IPv4 address on an IPv6 socket.
  const bool four = number.starts_with(kMapped) && number.find('.') != std::string_view::npos;
  return std::string(four ? number.substr(kMapped.size()) : number);
}

Failure connect_failed(int error) {
  if (error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH) {
    return fail(Errc::unavailable, "{}", std::generic_category().message(error));
  }
  return fail_errno(error, "connecting");
}

Failure transfer_failed(int error) {
  if (error == ECONNRESET || error == EPIPE)
    return fail(Errc::peer_lost, "connection closed by the server");
  return fail_errno(error, "transferring");
}

}  // namespace

Result<Socket> Socket::connect(const Address& address, Deadline deadline) {
  HORO_TRY(const AddressList list, resolve(address));
  Failure last = fail(Errc::not_found, "host '{}' has no address", address.host);
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    Socket socket(
        ::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
    if (!socket.is_open()) {
      last = fail_errno(errno, "making a socket");
      continue;
    }
    const int on = 1;  // Requests are small, and the client waits for each answer.
    setsockopt(socket.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int error = 0;
    if (::connect(socket.fd_, entry->ai_addr, entry->ai_addrlen) != 0) {
      // A connect that a signal interrupted continues, like one in progress.
      if (errno != EINPROGRESS && errno != EINTR) {
        last = connect_failed(errno);
        continue;
      }
      if (auto ready = socket.wait_for(POLLOUT, deadline); !ready) {
        return Failure(std::move(ready).error());
      }
      socklen_t size = sizeof error;
      getsockopt(socket.fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) return socket;
    last = connect_failed(error);
  }
  return last;
}

Socket::~Socket() {
  close();
}

void Socket::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

std::string Socket::own_host() const {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "";
  return number_of(storage, size);
}

std::string Socket::peer_host() const {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "";
  return number_of(storage, size);
}

Status Socket::send(std::span<const std::uint8_t> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      HORO_TRY_STATUS(wait_for(POLLOUT, deadline));
    } else if (errno != EINTR) {
      return transfer_failed(errno);
    }
  }
  return {};
}

Result<std::size_t> Socket::receive(std::span<std::uint8_t> buffer, const WaitLimit& limit) {
  while (true) {
    const auto n = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN) {
      HORO_TRY_STATUS(wait_for(POLLIN, limit));
    } else if (errno != EINTR) {
      return transfer_failed(errno);
    }
  }
}

Status Socket::wait_for(short events, const WaitLimit& limit) const {
  const auto& deadline = limit.deadline;
  while (true) {
    timespec left{};
    if (!deadline.is_never()) {
      const auto time = deadline.left(SteadyClock::instance().now());
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
      left.tv_sec = seconds.count();
      left.tv_nsec = static_cast<long>((time - seconds).count());
    }
    // A descriptor of -1 is passed over.
    std::array<pollfd, 2> entries{{{.fd = fd_, .events = events, .revents = 0},
                                   {.fd = limit.cancel, .events = POLLIN, .revents = 0}}};
    const int n =
        ppoll(entries.data(), entries.size(), deadline.is_never() ? nullptr : &left, nullptr);
    if (n > 0 && entries[0].revents != 0) return {};
    if (n > 0) return fail(Errc::cancelled, "the wait was cancelled");
    if (n == 0) return fail(Errc::timed_out, "timed out");
    if (errno != EINTR) return fail_errno(errno, "waiting for a socket");
  }
}

}  // namespace horo::kv
