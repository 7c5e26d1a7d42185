// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/connections/leader_listener.hpp"

#include <cerrno>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace horo::runtime::tree {

Result<LeaderListener> LeaderListener::open(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(address.empty() ? nullptr : address.c_str(), "0", &hints, &list);
  if (code != 0) {
    return fail(Errc::invalid_argument, "'{}' is not the number of an interface: {}", address,
                gai_strerror(code));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> entries(list, &freeaddrinfo);
  LeaderListener listener;
  listener.socket =
      UniqueFd(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!listener.socket) return fail_errno(errno, "making a socket");
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (bind(listener.socket.value(), list->ai_addr, list->ai_addrlen) != 0 ||
      listen(listener.socket.value(), SOMAXCONN) != 0 ||
      getsockname(listener.socket.value(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return fail_errno(errno, fmt::format("listening at '{}' for other hosts", address));
  }
  listener.port =
      ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                        : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  return listener;
}

}  // namespace horo::runtime::tree
