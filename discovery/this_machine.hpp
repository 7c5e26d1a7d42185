// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "discovery/host.hpp"

namespace horo::discovery {

/// Name of this machine as its kernel knows it.
std::string machine_name();

/// True for localhost, a loopback address, this machine's name (with or without its domain) and the
/// addresses of its interfaces. Asks no name server. Thread: any.
bool is_this_machine(std::string_view host);

/// Cores that this process may run on: its affinity, at least 1.
int usable_cores();

/// All hosts as one, under the first name: names of one machine share its memory.
/// Fails: unsupported, for a host that is not this machine.
Result<HostSet> only_this_machine(const HostSet& hosts);

}  // namespace horo::discovery
