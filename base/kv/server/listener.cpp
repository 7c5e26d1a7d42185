// SPDX-License-Identifier: Apache-2.0
#include "base/kv/server/listener.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace horo::kv {

namespace {

Result<std::uint16_t> bound_port(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return fail_errno(errno, "asking for the port");
  }
  const bool v6 = storage.ss_family == AF_INET6;
  return ntohs(v6 ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                  : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

/// The error of a connection that ended before it was taken. The next one may be good.
bool is_of_one_connection(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case EOPNOTSUPP:
      return true;
    default:
      return false;
  }
}

Failure listen_failed(const Address& address, int error) {
  const auto what = fmt::format("listening on {}", to_string(address));
  if (error == EADDRINUSE || error == EADDRNOTAVAIL) {
    return fail(Errc::unavailable,
                "{}: {}; take an address of this machine and a free port, or port 0", what,
                std::generic_category().message(error));
  }
  return fail_errno(error, what);
}

}  // namespace

Result<Listener> Listener::open(const Address& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) !=
      0) {
    return fail(Errc::invalid_argument, "'{}' is not an IP address to listen on", address.host);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> entry(found, &freeaddrinfo);
  const int fd = socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (fd < 0) return fail_errno(errno, "making a socket to listen on");
  Listener listener(fd, address);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (entry->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(fd, entry->ai_addr, entry->ai_addrlen) != 0 || listen(fd, SOMAXCONN) != 0) {
    return listen_failed(address, errno);
  }
  HORO_TRY(listener.address_.port, bound_port(fd));
  return listener;
}

Listener::~Listener() {
  if (fd_ >= 0) close(fd_);
}

Result<int> Listener::accept() {
  while (true) {
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on,
                 sizeof on);  // Ends the connections of a host that is lost.
      return fd;
    }
    const int error = errno;
    if (error == EAGAIN) return -1;
    if (is_of_one_connection(error)) continue;
    if (error != EMFILE) return fail_errno(error, "taking a connection");
    return fail(Errc::resource_exhausted, "taking a connection: {}",
                std::generic_category().message(error));
  }
}

}  // namespace horo::kv
