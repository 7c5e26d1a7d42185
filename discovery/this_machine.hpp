// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "discovery/host.hpp"

namespace horo::discovery {

/// Name of this machine as its kernel knows it.
std::string machine_name();

/// What this machine is called, as it was when this was made: for who asks about many hosts.
/// Thread: immutable.
class OwnNames {
 public:
  OwnNames();

  /// True for localhost, a loopback address, this machine's name (with or without its domain) and
  /// the addresses of its interfaces. Asks no name server.
  bool has(std::string_view host) const;

 private:
  std::string name_;
  std::vector<std::array<unsigned char, 16>> addresses_;  ///< IPv4 as mapped into IPv6.
};

/// The same of one host. Thread: any.
bool is_this_machine(std::string_view host);

/// Hardware threads that this process may run on, as the kernel numbers them; empty: not known.
std::vector<int> usable_cpus();

/// Cores that this process may run on: its affinity, at least 1.
int usable_cores();

/// All names of this machine as one host, at the place and under the name of the first of them:
/// they share its memory.
HostSet merge_this_machine(const HostSet& hosts);

}  // namespace horo::discovery
