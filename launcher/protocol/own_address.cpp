// SPDX-License-Identifier: Apache-2.0
#include "launcher/protocol/own_address.hpp"

#include <array>
#include <cerrno>
#include <ifaddrs.h>
#include <memory>
#include <netdb.h>
#include <sys/socket.h>

#include "base/net/own_addresses.hpp"
#include "base/unique_fd.hpp"

namespace horo::launcher {

namespace {

constexpr const char* kAnyPort = "9";  // Connecting a datagram socket sends nothing.

std::string text_of(const sockaddr* address) {
  const socklen_t size =
      address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return text.data();
}

}  // namespace

Result<std::string> own_address_towards(const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), kAnyPort, &hints, &found) != 0)
    return fail(Errc::invalid_argument, "'{}' is not an IP address", address);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> entry(found, &freeaddrinfo);
  const UniqueFd fd(socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (!fd || connect(fd.value(), entry->ai_addr, entry->ai_addrlen) != 0 ||
      getsockname(fd.value(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return fail(Errc::unavailable, "no route from this host to {}: {}", address,
                std::generic_category().message(errno));
  }
  return text_of(reinterpret_cast<const sockaddr*>(&own));
}

std::string any_own_address() {
  const auto addresses = own_addresses();
  return addresses.empty() ? "" : addresses.front();
}

std::string interface_of(const std::string& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const auto family = entry->ifa_addr->sa_family;
    if ((family == AF_INET || family == AF_INET6) && text_of(entry->ifa_addr) == address)
      return entry->ifa_name;
  }
  return {};
}

}  // namespace horo::launcher
