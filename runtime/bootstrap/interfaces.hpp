// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace horo::runtime::bootstrap {

/// Addresses of this machine's interfaces that are up, as numbers: IPv4 before IPv6, without
/// loopback and link-local ones. Thread: any.
std::vector<std::string> own_addresses();

bool is_loopback(std::string_view address);

/// The same for all processes that can reach each other by loopback and abstract sockets: the boot
/// of a kernel, and the network namespace. Says nothing about memory. Thread: any.
std::string machine_key();

}  // namespace horo::runtime::bootstrap
