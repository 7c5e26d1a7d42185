// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/tcp/tcp_contacts.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include "base/deadline.hpp"
#include "runtime/backends/reachable_address.hpp"

namespace horo::runtime {

namespace {

Deadline in(Duration time) {
  return Deadline::in(SteadyClock::instance(), time);
}

/// Other hosts cannot use a link-local address: its scope is a name of this host.
bool is_usable(const sockaddr* address) {
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET) return true;
  return address->sa_family == AF_INET6 &&
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

/// The interface's first IPv4 address, else its first IPv6 address.
Result<std::string> address_of(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail_errno(errno, "getifaddrs");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> entries(list, &freeifaddrs);
  std::string found;
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (interface != entry->ifa_name || !is_usable(entry->ifa_addr)) continue;
    const bool v4 = entry->ifa_addr->sa_family == AF_INET;
    if (!v4 && !found.empty()) continue;
    std::array<char, NI_MAXHOST> text{};
    const socklen_t size = v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(entry->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) !=
        0)
      continue;
    found = text.data();
    if (v4) break;
  }
  if (!found.empty()) return found;
  return fail(Errc::invalid_argument,
              "interface '{}' has no IP address on this host; name an interface or address of this "
              "host",
              interface);
}

Result<std::string> own_address(const Communicator& communicator) {
  if (!communicator.address.empty()) return communicator.address;
  if (!communicator.interface.empty()) return address_of(communicator.interface);
  return reachable_address(communicator);
}

}  // namespace

Result<std::shared_ptr<TcpEndpoint>> endpoint_of(const Communicator& communicator) {
  if (communicator.shared != nullptr) {
    if (auto known = std::dynamic_pointer_cast<TcpEndpoint>(*communicator.shared)) return known;
  }
  HORO_TRY(const auto address, own_address(communicator));
  const int me = communicator.members[static_cast<std::size_t>(communicator.position)];
  auto endpoint = TcpEndpoint::open(address, me, communicator.secret, communicator.encryption);
  if (!endpoint) {
    return fail(endpoint.error().code,
                "interface '{}' address '{}' cannot be used: {}; name an interface or address of "
                "this host",
                communicator.interface, address, endpoint.error().message);
  }
  if (communicator.shared != nullptr) *communicator.shared = *endpoint;
  return endpoint;
}

Status exchange_contacts(TcpEndpoint& endpoint, const Communicator& c) {
  auto& contacts = endpoint.contacts();
  const bool all_known = std::all_of(c.members.begin(), c.members.end(),
                                     [&](int rank) { return contacts.contains(rank); });
  if (all_known) return {};
  contacts[endpoint.me()] = endpoint.address();
  const auto deadline = in(c.start_timeout);
  if (c.position != 0) {
    HORO_TRY_STATUS(c.meeting->set(fmt::format("{}/tcp/{}", c.name, endpoint.me()),
                                   kv::to_string(endpoint.address()), deadline));
  } else {
    for (const int rank : c.members) {
      if (rank == endpoint.me()) continue;
      HORO_TRY(const auto text, c.meeting->get(fmt::format("{}/tcp/{}", c.name, rank), deadline));
      HORO_TRY(contacts[rank], kv::parse_address(text));
    }
    return c.meeting->set(fmt::format("{}/tcp", c.name), encode_contacts(contacts), deadline);
  }
  HORO_TRY(const auto text, c.meeting->get(fmt::format("{}/tcp", c.name), deadline));
  HORO_TRY(auto all, decode_contacts(text));
  const auto missing = std::find_if(c.members.begin(), c.members.end(),
                                    [&](int rank) { return !all.contains(rank); });
  if (missing != c.members.end())
    return fail(Errc::protocol, "rank {} is missing in the table of addresses", *missing);
  contacts.merge(all);
  return {};
}

std::string encode_contacts(const std::map<int, kv::Address>& contacts) {
  std::string text;
  for (const auto& [rank, address] : contacts)
    text += fmt::format("{} {}\n", rank, kv::to_string(address));
  return text;
}

Result<std::map<int, kv::Address>> decode_contacts(std::string_view text) {
  std::map<int, kv::Address> contacts;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    int rank = -1;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), rank);
    const auto used = static_cast<std::size_t>(parsed.ptr - line.data());
    if (parsed.ec != std::errc() || rank < 0 || used >= line.size() || line[used] != ' ')
      return fail(Errc::protocol, "'{}' does not say where a rank listens", line.substr(0, 80));
    HORO_TRY(contacts[rank], kv::parse_address(line.substr(used + 1)));
  }
  return contacts;
}

}  // namespace horo::runtime
