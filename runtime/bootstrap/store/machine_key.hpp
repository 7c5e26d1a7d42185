// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace horo::runtime::bootstrap {

/// The same for all processes that can reach each other by loopback and abstract sockets: the boot
/// of a kernel, and the network namespace. Says nothing about memory. Thread: any.
std::string machine_key();

}  // namespace horo::runtime::bootstrap
