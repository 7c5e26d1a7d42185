// SPDX-License-Identifier: Apache-2.0
#include "discovery/network_interfaces.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>

#include "base/unique_fd.hpp"
#include "discovery/text_file.hpp"

namespace horo::discovery {

namespace {

constexpr std::uint16_t kAnyPort = 9;  // For a socket that never sends.

using Addresses = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

Result<Addresses> list_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail_errno(errno, "listing network interfaces");
  return Addresses(list, &freeifaddrs);
}

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof v6);
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

int length_of(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  int bits = 0;
  if (mask->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, mask, sizeof v4);
    bits = std::popcount(v4.sin_addr.s_addr);
  } else if (mask->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, mask, sizeof v6);
    for (const auto byte : v6.sin6_addr.s6_addr) bits += std::popcount(byte);
  }
  return bits;
}

std::optional<int> speed_of(const std::string& name) {
  const auto text = read_text_file(fmt::format("/sys/class/net/{}/speed", name));
  int value = 0;
  if (!text) return {};
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || value <= 0) return {};
  return value;
}

std::string interface_with(const std::string& address) {
  const auto list = list_addresses();
  if (!list) return {};
  for (const auto* entry = list->get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && text_of(entry->ifa_addr) == address) return entry->ifa_name;
  }
  return {};
}

/// Connecting a datagram socket makes the kernel choose a route; no packet is sent.
Result<Route> route_by(const addrinfo& target) {
  const UniqueFd fd(socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno(errno, "asking for a route");
  Route route{.address = text_of(target.ai_addr), .source = {}, .interface = {}};
  if (connect(fd.value(), target.ai_addr, target.ai_addrlen) != 0) {
    return fail(Errc::unavailable, "no route to {}: {}", route.address,
                std::generic_category().message(errno));
  }
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (getsockname(fd.value(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return fail_errno(errno, "asking for a route");
  route.source = text_of(reinterpret_cast<const sockaddr*>(&own));
  route.interface = interface_with(route.source);
  return route;
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
  HORO_TRY(const auto list, list_addresses());
  std::vector<Interface> interfaces;
  for (const auto* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    auto same = std::find_if(interfaces.begin(), interfaces.end(),
                             [&](const Interface& i) { return i.name == entry->ifa_name; });
    if (same == interfaces.end()) {
      interfaces.push_back({.name = entry->ifa_name,
                            .addresses = {},
                            .up = (entry->ifa_flags & IFF_RUNNING) != 0,
                            .loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0,
                            .megabits = speed_of(entry->ifa_name)});
      same = interfaces.end() - 1;
    }
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    same->addresses.push_back(
        fmt::format("{}/{}", text_of(entry->ifa_addr), length_of(entry->ifa_netmask)));
  }
  return interfaces;
}

Result<Route> route_to(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const auto port = std::to_string(kAnyPort);
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &wanted, &found); error != 0) {
    return fail(Errc::not_found, "'{}' has no address: {}", host, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  auto route = Result<Route>(fail(Errc::unavailable, "'{}' has no address", host));
  for (const auto* target = found; target != nullptr && !route; target = target->ai_next)
    route = route_by(*target);
  return route;
}

}  // namespace horo::discovery
