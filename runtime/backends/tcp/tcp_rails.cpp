// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_rails.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>

namespace horo::runtime {

namespace {

/// Other hosts cannot use a link-local address: its scope is a name of this host.
bool is_usable(const sockaddr* address) {
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET) return true;
  return address->sa_family == AF_INET6 &&
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

TcpRail rail_of(const ifaddrs& entry) {
  const auto* address = entry.ifa_addr;
  const void* bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (address->sa_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(address->sa_family, bytes, text.data(), text.size());
  return {.interface = entry.ifa_name, .address = text.data()};
}

/// The interface's first IPv4 address, else its first IPv6 address.
Result<TcpRail> rail_of(const ifaddrs* list, std::string_view interface) {
  std::optional<TcpRail> found;
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (interface != entry->ifa_name || !is_usable(entry->ifa_addr)) continue;
    const bool v4 = entry->ifa_addr->sa_family == AF_INET;
    if (v4 || !found) found = rail_of(*entry);
    if (v4) break;
  }
  if (found) return *found;
  return fail(Errc::invalid_argument,
              "interface '{}' has no IP address on this host; name an interface or address of this "
              "host",
              interface);
}

}  // namespace

Result<std::vector<TcpRail>> rails_of(std::string_view interfaces) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail_errno(errno, "getifaddrs");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<TcpRail> rails;
  for (bool more = true; more;) {
    const auto comma = interfaces.find(',');
    more = comma != std::string_view::npos;
    HORO_TRY(auto rail, rail_of(list, interfaces.substr(0, comma)));
    rails.push_back(std::move(rail));
    if (more) interfaces.remove_prefix(comma + 1);
  }
  HORO_TRY_STATUS(check_apart(rails));
  return rails;
}

Status check_apart(std::span<const TcpRail> rails) {
  for (std::size_t i = 1; i < rails.size(); ++i) {
    for (const auto& other : rails.first(i)) {
      if (other.interface == rails[i].interface) {
        return fail(Errc::invalid_argument, "interface '{}' is named twice; name each once",
                    other.interface);
      }
      if (other.address == rails[i].address) {
        return fail(Errc::invalid_argument,
                    "the interfaces '{}' and '{}' have the same address {}; name only one of them, "
                    "or give each an address of its own",
                    other.interface, rails[i].interface, other.address);
      }
    }
  }
  return {};
}

}  // namespace horo::runtime
