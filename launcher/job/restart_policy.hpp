// SPDX-License-Identifier: Apache-2.0
// Whether a failed job is started again: after a failure of hosts, agents or the system, as often
// as the user allows; after a failure of the program only where the user says so. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace horo::launcher {

struct FirstFailure;
struct JobState;

struct RestartPolicy {
  int most = 0;                 ///< Restarts; 0: none.
  Duration within{};            ///< The restarts within this time count; 0: all of the job's.
  bool after_anything = false;  ///< Also after any failure of the program.
  std::vector<int> codes;       ///< Also after these exit codes of the rank that failed first,
  std::vector<int> signals;     ///< and after these signals that killed it.

  /// `most` is "3", "3/1h" or "3/600" (seconds); `after` is "75,100-110,SIGSEGV" or "any".
  /// Fails: invalid_argument, naming what is wrong.
  static Result<RestartPolicy> parse(std::string_view most, std::string_view after);
};

struct RestartDecision {
  bool restart = false;
  std::string why;  ///< Why there is none although the user may expect it; empty: nothing to say.
};

/// Whether the cause may be gone at the next start: a host may be back, or may not be needed. A
/// program that is not installed or not allowed on a host stays so.
bool may_pass(const Error& error);

/// For a job whose generation has ended; `earlier` are the times of its restarts so far.
RestartDecision decide_restart(const RestartPolicy& policy, const JobState& state,
                               const std::vector<TimePoint>& earlier, TimePoint now);

/// For an attempt that failed so. `processes_left`: some of its processes may still run.
RestartDecision decide_restart(const RestartPolicy& policy, const FirstFailure& failure,
                               bool processes_left, const std::vector<TimePoint>& earlier,
                               TimePoint now);

/// The pause before restart number `count`, from 0 on: none at first, then longer and longer.
Duration restart_pause(std::size_t count);

}  // namespace horo::launcher
