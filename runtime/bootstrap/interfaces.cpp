// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/interfaces.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdio>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <fmt/format.h>

namespace horo::runtime::bootstrap {

std::vector<std::string> own_addresses() {
  std::vector<std::string> four;
  std::vector<std::string> six;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return four;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 ||
        (entry->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
      four.emplace_back(text.data());
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;
      inet_ntop(AF_INET6, &address->sin6_addr, text.data(), text.size());
      six.emplace_back(text.data());
    }
  }
  freeifaddrs(list);
  four.insert(four.end(), six.begin(), six.end());
  return four;
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

std::string machine_key() {
  std::array<char, 64> boot{};
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re"); file != nullptr) {
    if (std::fgets(boot.data(), boot.size(), file) == nullptr) boot[0] = '\0';
    std::fclose(file);
  }
  std::string key(boot.data());
  std::erase(key, '\n');

  struct stat network {};

  if (stat("/proc/self/ns/net", &network) == 0) key += fmt::format("-{}", network.st_ino);
  return key;
}

}  // namespace horo::runtime::bootstrap
