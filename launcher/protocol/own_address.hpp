// SPDX-License-Identifier: Apache-2.0
// Which of a host's addresses leads where: as the system's routes say, not the names of interfaces.
#pragma once

#include <string>

#include "base/result.hpp"

namespace horo::launcher {

/// An address of no host (RFC 5737), so its route is the default route.
inline constexpr const char* kNoHostAddress = "192.0.2.1";

/// This host's own address on the route to `address`, a number. Nothing is sent.
/// Fails: invalid_argument (no number), unavailable (no route).
Result<std::string> own_address_towards(const std::string& address);

/// An address of this host that other hosts may reach, for a host without a default route: the
/// first one that is up and no loopback, IPv4 before IPv6. Empty: none.
std::string any_own_address();

/// Name of the interface that has `address`; empty: none.
std::string interface_of(const std::string& address);

}  // namespace horo::launcher
