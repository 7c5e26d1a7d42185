// SPDX-License-Identifier: Apache-2.0
// Wakes members of a process set that sleep.
#pragma once

#include <cstdint>

#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// Rings the bells of a set's members; owns no state. The caller first publishes with a seq_cst
/// store what a sleeper may wait for. A sleeper announces itself with a seq_cst store to `drive`
/// and then looks again. In the total order of these operations one of the two sees the other. No
/// function makes a system call when nobody has to be woken. Thread: any.
class SetBells {
 public:
  explicit SetBells(const SetRegion& region) : region_(region) {}

  /// Whether the calling rank's own thread is woken too, when it sleeps.
  enum class Self { too, spared };

  /// Wakes members that sleep for any of `what`, a set of bits from `interest`. A member that has
  /// no driver is woken only for entries, and only if it needs its own thread or has entries that
  /// are needed soon. Returns how many.
  int wake(std::uint32_t what, Self self = Self::too) const;

  /// Why members that are behind have to run their entries now.
  enum class For {
    shares,  ///< Peers need what these entries ask of the members. Other entries may wait.
    room,    ///< The log is full.
  };

  /// Wakes the members that have no driver although the log has entries that they have not done and
  /// that are needed for this. Returns how many.
  int wake_laggards(For reason, Self self = Self::spared) const;

  /// Wakes the host's first rank, which leads sets with members on other hosts.
  void wake_leader() const;

  /// A rank of this host, in any set, sleeps until peers progress inside an entry.
  bool any_sleeps_inside() const { return region_.host().waker().any_sleeps_inside(); }

  /// This member does; whatever it wrote before is visible.
  bool sleeps_inside(int member) const;

 private:
  /// Member `m` has to run its entries soon: peers need that of it, or it needs its own thread.
  bool runs_soon(int m) const;

  const SetRegion& region_;
};

}  // namespace horo::runtime
