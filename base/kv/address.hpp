// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace horo::kv {

/// Where a server listens, as HORO_RENDEZVOUS spells it: "node1:4711", "10.0.0.1:4711",
/// "[fe80::1%eth0]:4711".
struct Address {
  std::string host;  ///< Name or number, without brackets.
  std::uint16_t port = 0;

  friend bool operator==(const Address&, const Address&) = default;
};

/// Fails: invalid_argument, naming the text and the required form.
Result<Address> parse_address(std::string_view text);

/// The inverse of parse_address.
std::string to_string(const Address& address);

}  // namespace horo::kv
