// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "discovery/host.hpp"

namespace horo::discovery {

/// The slots that a host may get because several lines of a list name it. A script that prints one
/// host again and again would otherwise start as many processes as it prints lines.
struct RepeatLimits {
  int own_cores = 1;               ///< The cores of this machine.
  int ranks = 1;                   ///< The number with which the job begins.
  bool ranks_are_limited = false;  ///< The job has a largest number of ranks.
};

/// Refuses a host whose lines together give it more slots than a host may have. Of this machine
/// also one with more slots than cores, if the job has no limit and begins with fewer ranks. A host
/// with one line has the slots of that line, whatever they are.
/// Fails: invalid_argument, naming the host, the number of lines and the way out.
Status check_repeated_hosts(const HostSet& hosts, const RepeatLimits& limits);

}  // namespace horo::discovery
