// SPDX-License-Identifier: Apache-2.0
#include "base/kv/address.hpp"

#include <charconv>

namespace horo::kv {

Result<Address> parse_address(std::string_view text) {
  const auto wrong = [&] {
    return fail(
        Errc::invalid_argument,
        "address '{}' must be host:port with a port from 1 to 65535; an IPv6 address stands in "
        "brackets",
        text);
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  auto host = text.substr(0, colon);
  const auto digits = text.substr(colon + 1);
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return wrong();
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong();
  }
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (host.empty() || host.find_first_of("[]\0", 0, 3) != std::string_view::npos ||
      error != std::errc{} || end != digits.data() + digits.size() || port == 0) {
    return wrong();
  }
  return Address{std::string(host), port};
}

std::string to_string(const Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", address.host, v6 ? "]" : "", address.port);
}

}  // namespace horo::kv
