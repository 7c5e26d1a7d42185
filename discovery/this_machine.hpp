// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "discovery/host.hpp"

namespace horo::discovery {

/// The kernel's name of this machine.
std::string machine_name();

/// The names of this machine at the time of construction. Cheaper than is_this_machine for many
/// hosts. Thread: immutable.
class OwnNames {
 public:
  OwnNames();

  /// True for localhost, a loopback address, this machine's name (with or without its domain) and
  /// the addresses of its interfaces. Does not ask a name server.
  bool has(std::string_view host) const;

 private:
  std::string name_;
  std::vector<std::array<unsigned char, 16>> addresses_;  ///< IPv4 addresses are mapped into IPv6.
};

/// Whether `host` names this machine. Thread: any.
bool is_this_machine(std::string_view host);

/// The hardware threads on which this process may run, by the kernel's numbers; empty if not known.
std::vector<int> usable_cpus();

/// Number of cores in the affinity of this process, at least 1.
int usable_cores();

/// Merges all names of this machine into one host, at the position and under the name of the first,
/// because they share its memory.
HostSet merge_this_machine(const HostSet& hosts);

}  // namespace horo::discovery
