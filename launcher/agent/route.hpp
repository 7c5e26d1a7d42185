// SPDX-License-Identifier: Apache-2.0
// Which of a host's addresses leads where: the system's choice of route, not names of interfaces.
#pragma once

#include <string>

#include "base/result.hpp"

namespace horo::launcher {

/// The address that this host has on its way to `address`, a number. Nothing is sent.
/// Fails: invalid_argument (no number), unavailable (no route).
Result<std::string> own_address_towards(const std::string& address);

/// An address of this host that others may reach, where nothing says which: the first one that is
/// up and no loopback, IPv4 before IPv6. Empty: none.
std::string any_own_address();

/// Name of the interface that has `address`; empty: none.
std::string interface_of(const std::string& address);

}  // namespace horo::launcher
