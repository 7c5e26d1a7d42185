// SPDX-License-Identifier: Apache-2.0
#include "discovery/host.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace horo::discovery {

namespace {

bool is_name(std::string_view text) {
  // A leading '-' would read as an option to the programs that are given the name.
  return !text.empty() && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
         });
}

bool is_ipv6(std::string_view text) {
  return text.find(':') != std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == ':' || c == '.' || c == '%';
         });
}

Result<int> parse_slots(std::string_view text, std::string_view entry) {
  int slots = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, slots);
  if (error != std::errc{} || stop != end || slots < 1 || slots > kMaxSlots) {
    return fail(Errc::invalid_argument, "slots in '{}' must be a whole number from 1 to {}", entry,
                kMaxSlots);
  }
  return slots;
}

}  // namespace

HostSet::HostSet(const std::vector<Host>& hosts) {
  for (const auto& host : hosts) add(host);
}

void HostSet::add(const Host& host) {
  const auto same = std::find_if(hosts_.begin(), hosts_.end(),
                                 [&](const Host& h) { return h.name == host.name; });
  if (same == hosts_.end()) {
    hosts_.push_back(host);
  } else {
    same->slots = std::min(same->slots + host.slots, kMaxSlots);
  }
}

long long HostSet::slots() const {
  long long sum = 0;
  for (const auto& host : hosts_) sum += host.slots;
  return sum;
}

std::string describe(const HostSet& hosts) {
  std::string text;
  for (const auto& host : hosts.hosts()) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ", ", host.name, host.slots);
  }
  return text;
}

Result<Host> parse_host(std::string_view entry) {
  if (entry.empty()) return fail(Errc::invalid_argument, "a host entry is empty; write name:slots");
  std::string_view name;
  std::string_view rest;
  if (entry.front() == '[') {
    const auto close = entry.find(']');
    if (close == std::string_view::npos) {
      return fail(Errc::invalid_argument, "host '{}' has no closing bracket", entry);
    }
    name = entry.substr(1, close - 1);
    rest = entry.substr(close + 1);
    if (!is_ipv6(name)) {
      return fail(Errc::invalid_argument, "'{}' in host '{}' is not an IPv6 address", name, entry);
    }
  } else {
    const auto colon = entry.find(':');
    name = entry.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view{} : entry.substr(colon);
    if (rest.find(':', rest.empty() ? 0 : 1) != std::string_view::npos) {
      return fail(
          Errc::invalid_argument,
          "host '{}' has several colons; write an IPv6 address in brackets: [address]:slots",
          entry);
    }
    if (!is_name(name)) {
      return fail(Errc::invalid_argument,
                  "host '{}' must be a name of letters, digits, '.', '_' and, not in front, '-', "
                  "then :slots",
                  entry);
    }
  }
  Host host{.name = std::string(name), .slots = 1};
  if (rest.empty()) return host;
  if (rest.front() != ':') {
    return fail(Errc::invalid_argument, "'{}' after the bracket in host '{}' must be :slots", rest,
                entry);
  }
  HORO_TRY(host.slots, parse_slots(rest.substr(1), entry));
  return host;
}

}  // namespace horo::discovery
