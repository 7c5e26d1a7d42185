// SPDX-License-Identifier: Apache-2.0
#include "discovery/this_machine.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <climits>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <sched.h>
#include <strings.h>
#include <unistd.h>

namespace horo::discovery {

namespace {

/// An address in the 16 bytes of IPv6; an IPv4 address is mapped into them.
using Address = std::array<unsigned char, 16>;

Address mapped(const in_addr& v4) {
  Address address{};
  address[10] = address[11] = 0xff;
  std::memcpy(&address[12], &v4, sizeof v4);
  return address;
}

std::optional<Address> parse_address(const std::string& text) {
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return mapped(v4);
  Address v6{};
  if (inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) return v6;
  return std::nullopt;
}

std::optional<Address> address_of(const sockaddr* socket) {
  if (socket == nullptr) return std::nullopt;
  if (socket->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, socket, sizeof v4);
    return mapped(v4.sin_addr);
  }
  if (socket->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, socket, sizeof v6);
    Address address{};
    std::memcpy(address.data(), &v6.sin6_addr, address.size());
    return address;
  }
  return std::nullopt;
}

bool is_loopback(const Address& address) {
  static const Address v6_loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  static const Address v4_loopback = mapped(in_addr{htonl(INADDR_LOOPBACK)});
  return address == v6_loopback || std::memcmp(address.data(), v4_loopback.data(), 13) == 0;
}

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool is_own_name(std::string_view host, std::string_view own) {
  return same_name(host, "localhost") || same_name(host, "localhost.localdomain") ||
         same_name(host, own) || same_name(host, own.substr(0, own.find('.')));
}

}  // namespace

std::string machine_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

OwnNames::OwnNames() : name_(machine_name()) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (const auto address = address_of(entry->ifa_addr)) addresses_.push_back(*address);
  }
}

bool OwnNames::has(std::string_view host) const {
  if (is_own_name(host, name_)) return true;
  const auto address = parse_address(std::string(host));
  if (!address) return false;
  return is_loopback(*address) ||
         std::find(addresses_.begin(), addresses_.end(), *address) != addresses_.end();
}

bool is_this_machine(std::string_view host) {
  // Asking the kernel for its addresses is expensive, so it is done only if `host` is an address.
  return is_own_name(host, machine_name()) ||
         (parse_address(std::string(host)) && OwnNames().has(host));
}

std::vector<int> usable_cpus() {
  // The kernel refuses a mask that is shorter than its own.
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  for (std::size_t bits = CPU_SETSIZE; bits <= kMost; bits *= 2) {
    std::vector<cpu_set_t> mask(bits / CPU_SETSIZE);
    const auto bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) != 0) continue;
    std::vector<int> cpus;
    for (std::size_t cpu = 0; cpu < bits; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, mask.data())) cpus.push_back(static_cast<int>(cpu));
    }
    return cpus;
  }
  return {};
}

int usable_cores() {
  return std::max(1, static_cast<int>(usable_cpus().size()));
}

HostSet merge_this_machine(const HostSet& hosts) {
  const OwnNames own;
  HostSet merged;
  std::string first;
  for (auto host : hosts.hosts()) {
    if (own.has(host.name)) {
      if (first.empty()) first = host.name;
      host.name = first;
    }
    merged.add(host);
  }
  return merged;
}

}  // namespace horo::discovery
