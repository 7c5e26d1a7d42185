// SPDX-License-Identifier: Apache-2.0
// This rank's place in sums that go by hosts: first among the devices of each host, then between
// the hosts, then among the devices again. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/backends/device/device_options.hpp"
#include "runtime/backends/hierarchical/hierarchy.hpp"

namespace horo::runtime {

struct ByHostsPlace {
  Hierarchy hierarchy;
  /// Positions in the set of the ranks that own the same slice as this one, one on each host, in
  /// rising order. Empty: this rank owns none.
  std::vector<int> owners;
  std::size_t own = 0;  ///< This rank's index in `owners`.
  int first_here = 0;   ///< Position of this host's first rank.

  /// Elements of local rank `local`'s slice.
  std::uint64_t slice_of(std::uint64_t elements, int local) const;
  /// The number of the first of them.
  std::uint64_t first_of(std::uint64_t elements, int local) const;
};

/// `place` spans several hosts. Fails: invalid_argument.
Result<ByHostsPlace> by_hosts_place(const SetPlace& place);

}  // namespace horo::runtime
