// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_rails.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>

namespace horo::runtime {

namespace {

/// An IP address of either version.
struct IpBytes {
  std::array<std::uint8_t, 16> bytes{};
  std::size_t size = 0;
};

std::optional<IpBytes> parse(const std::string& text) {
  IpBytes ip;
  if (inet_pton(AF_INET, text.c_str(), ip.bytes.data()) == 1) {
    ip.size = 4;
  } else if (inet_pton(AF_INET6, text.c_str(), ip.bytes.data()) == 1) {
    ip.size = 16;
  } else {
    return std::nullopt;
  }
  return ip;
}

bool share_prefix(const IpBytes& a, const IpBytes& b, int prefix) {
  if (a.size != b.size) return false;
  for (std::size_t i = 0; i < a.size && prefix > 0; ++i, prefix -= 8) {
    const int unshared = std::max(0, 8 - prefix);
    if ((a.bytes[i] ^ b.bytes[i]) >> unshared != 0) return false;
  }
  return true;
}

/// Other hosts cannot use a link-local address: its scope is a name of this host.
bool is_usable(const sockaddr* address) {
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET) return true;
  return address->sa_family == AF_INET6 &&
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

std::span<const std::uint8_t> bytes_of(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(address);
    return {reinterpret_cast<const std::uint8_t*>(&four->sin_addr), 4};
  }
  const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
  return {reinterpret_cast<const std::uint8_t*>(&six->sin6_addr), 16};
}

TcpRail rail_of(const ifaddrs& entry) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(entry.ifa_addr->sa_family, bytes_of(entry.ifa_addr).data(), text.data(), text.size());
  TcpRail rail{.interface = entry.ifa_name, .address = text.data()};
  if (entry.ifa_netmask == nullptr) return rail;
  for (const auto byte : bytes_of(entry.ifa_netmask)) rail.prefix += std::popcount(byte);
  return rail;
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

const std::string* address_on(const TcpRail& rail, std::span<const std::string> addresses) {
  const auto own = parse(rail.address);
  if (!own) return nullptr;
  const auto found = std::find_if(addresses.begin(), addresses.end(), [&](const auto& address) {
    const auto other = parse(address);
    return other && share_prefix(*own, *other, rail.prefix);
  });
  return found == addresses.end() ? nullptr : &*found;
}

}  // namespace horo::runtime
