// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/connections/link_facts.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <fstream>
#include <ifaddrs.h>
#include <linux/tcp.h>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

namespace horo::runtime::tree {

namespace {

/// The address without its port; empty for other kinds of addresses.
std::string address_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, address, sizeof four);
    inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, address, sizeof six);
    if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
      inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text, sizeof text);
    } else {
      inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
    }
  }
  return text;
}

/// The interface with this address of the host; empty: none has it.
std::string interface_with(const std::string& address) {
  ifaddrs* list = nullptr;
  if (address.empty() || getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const auto* one = list; one != nullptr; one = one->ifa_next) {
    if (address_of(one->ifa_addr) == address) return one->ifa_name;
  }
  return {};
}

/// 0: the driver does not say, as for virtual interfaces, or the interface is down.
std::int64_t rate_of(const std::string& interface) {
  std::int64_t rate = 0;
  if (!interface.empty()) std::ifstream("/sys/class/net/" + interface + "/speed") >> rate;
  return std::max<std::int64_t>(0, rate);
}

}  // namespace

LinkFacts facts_of(int socket) {
  LinkFacts facts;
  tcp_info info{};
  socklen_t size = sizeof info;
  // Kernels before 4.6 fill a shorter structure.
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
      size >= offsetof(tcp_info, tcpi_min_rtt) + sizeof info.tcpi_min_rtt &&
      info.tcpi_min_rtt != ~0U) {
    facts.round_trip = std::chrono::microseconds(info.tcpi_min_rtt);
  }
  sockaddr_storage own{};
  socklen_t own_size = sizeof own;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0)
    facts.mbit_per_s = rate_of(interface_with(address_of(reinterpret_cast<sockaddr*>(&own))));
  return facts;
}

LinkFacts slower(const LinkFacts& a, const LinkFacts& b) {
  const auto lower = std::min(a.mbit_per_s, b.mbit_per_s);
  return {.round_trip = std::max(a.round_trip, b.round_trip),
          .mbit_per_s = lower == 0 ? std::max(a.mbit_per_s, b.mbit_per_s) : lower};
}

std::string describe(const LinkFacts& facts) {
  std::string text;
  if (facts.mbit_per_s != 0) text = fmt::format("{} Mbit/s", facts.mbit_per_s);
  if (facts.round_trip <= Duration::zero()) return text;
  constexpr double kLeastClass = 62.5e-3;  // Milliseconds.
  double below = kLeastClass;
  while (std::chrono::duration<double, std::milli>(facts.round_trip).count() >= below) below *= 4;
  return fmt::format("{}{}round trips below {:g} ms", text, text.empty() ? "" : ", ", below);
}

}  // namespace horo::runtime::tree
