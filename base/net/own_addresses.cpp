// SPDX-License-Identifier: Apache-2.0
#include "base/net/own_addresses.hpp"

#include <arpa/inet.h>
#include <array>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>

namespace horo {

std::vector<std::string> own_addresses() {
  std::vector<std::string> four;
  std::vector<std::string> six;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return four;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const bool usable = (entry->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP;
    if (entry->ifa_addr == nullptr || !usable) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      four.emplace_back(inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()));
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;
      six.emplace_back(inet_ntop(AF_INET6, &address->sin6_addr, text.data(), text.size()));
    }
  }
  four.insert(four.end(), six.begin(), six.end());
  return four;
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

}  // namespace horo
