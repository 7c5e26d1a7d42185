// SPDX-License-Identifier: Apache-2.0
// Whether a job that has failed starts anew: a failure of hosts, agents or the system, as often as
// the user allows; a failure of the program only where the user says so. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "launcher/job/state.hpp"

namespace horo::launcher {

struct RestartPolicy {
  int most = 0;                 ///< Restarts; 0: none.
  Duration within{};            ///< So many within this time; 0: in the whole life of the job.
  bool after_anything = false;  ///< Also after whatever the program does wrong.
  std::vector<int> codes;       ///< Also after these exit codes of the rank that failed first,
  std::vector<int> signals;     ///< and after these signals that killed it.

  /// `most` as "3", "3/1h" or "3/600" (seconds), `after` as "75,100-110,SIGSEGV" or "any".
  /// Fails: invalid_argument, naming what is wrong.
  static Result<RestartPolicy> parse(std::string_view most, std::string_view after);
};

struct RestartDecision {
  bool restart = false;
  std::string why;  ///< Why not, where the user may have expected it; empty: nothing to say.
};

/// For a job that has finished; `earlier` are the times of its restarts so far.
RestartDecision decide_restart(const RestartPolicy& policy, const JobState& state,
                               const std::vector<TimePoint>& earlier, TimePoint now);

/// How long to wait before restart number `count`, from 0 on: at once first, then longer and
/// longer.
Duration restart_pause(std::size_t count);

/// Names of the hosts that another attempt does better without.
std::vector<std::string> bad_hosts(const JobState& state);

}  // namespace horo::launcher
