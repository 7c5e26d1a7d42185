// SPDX-License-Identifier: Apache-2.0
// The two ways to tune a command: one run in which the runtime tries settings, and one run for each
// trial.
#pragma once

#include <optional>
#include <string>

#include "apps/tune/trials/job_runs.hpp"
#include "apps/tune/trials/state_file.hpp"
#include "apps/tune/trials/trial_driver.hpp"

namespace horo::apps {

/// The result of trials.
struct TuneOutcome {
  TuneRecord record;
  std::optional<SettingWords> keep;  ///< Unset: the default stays.
  bool settled = false;              ///< The search came to its end.
  bool failed = false;               ///< The command failed, so there is no result.
  int signal = 0;                    ///< The user's signal; 0: none.
  double seconds = 0;
};

/// One run with the runtime's own autotuner. Blocks: for the run. Fails: it cannot be started.
Result<TuneOutcome> tune_online(const TuneRequest& request, JobRuns& runs);

/// A run for each trial. `seconds` is the time that is left. Blocks: for the runs. Fails: a run
/// cannot be started, or the file of --resume cannot be read or written.
Result<TuneOutcome> tune_by_restarts(const TuneRequest& request, const TrialSpace& space,
                                     double seconds, JobRuns& runs);

/// The trials as samples. Pure.
TuneRecord record_of_trials(const TrialDriver& driver, const TrialSpace& space,
                            Objective objective);

/// The cause that ended a run whose search had not settled. Pure.
EarlyStop early_stop_of(const JobRun& run);

/// How one trial ended. `objective`: what counts, or undecided. Pure.
TrialResult judge_run(const JobRun& run, Objective objective);

/// The cause that ended the trials before their search was over. Pure.
EarlyStop early_stop_of(TrialStop stop);

/// Why the trials stopped before the search did, for people; empty if they did not. Pure.
std::string stop_text(const TrialDriver& driver, TrialStop stop, const TrialRules& rules);

}  // namespace horo::apps
