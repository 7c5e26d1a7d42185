// SPDX-License-Identifier: Apache-2.0
// IP addresses of this machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace horo {

/// Addresses of this machine's interfaces that are up, as numbers: IPv4 before IPv6, without
/// loopback and link-local ones. Empty when the system does not list them. Thread: any.
std::vector<std::string> own_addresses();

/// Whether `address`, a number, can only mean the machine that uses it.
bool is_loopback(std::string_view address);

}  // namespace horo
