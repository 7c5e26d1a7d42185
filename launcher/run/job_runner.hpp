// SPDX-License-Identifier: Apache-2.0
// Runs a job from code: plan it, run it, hear what happens. `horo run` is one caller.
//
//     auto loop = Loop::make().value();
//     JobRunner runner(*loop, {.command = {"python3", "train.py"},
//                              .directory = "/work",
//                              .environment = environ,
//                              .np = 4,
//                              .settings = Settings::resolve({}).value()});
//     HORO_TRY(auto plan, runner.plan());
//     HORO_TRY(const auto outcome, runner.run(std::move(plan)));
//     return outcome.exit_code;
//
// The ranks' lines go to request.out_fd and err_fd; RankWrote events carry the same bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop/loop.hpp"
#include "launcher/job/job_report.hpp"
#include "launcher/job/job_state.hpp"
#include "launcher/output/log_files.hpp"
#include "launcher/plan/job_plan.hpp"
#include "launcher/plan/job_request.hpp"
#include "launcher/run/run_events.hpp"

namespace horo::launcher {

/// `handle` is for programs: SIGINT, SIGTERM and others then act on the job, and SIGPIPE does not
/// end the process. A library leaves the process's signals alone and calls JobRunner::signal.
enum class SignalPolicy : std::uint8_t { leave, handle };

/// The reaction to a reader of the output that is gone.
enum class ClosedOutput : std::uint8_t { ignore, stop_job };

struct JobRunnerOptions {
  SignalPolicy signals = SignalPolicy::leave;
  ClosedOutput closed_output = ClosedOutput::ignore;
  std::optional<LogFiles> logs{};    ///< Files for every rank's output.
  std::optional<TimePoint> begin{};  ///< When the program began; unset: now. For reports.
};

struct JobOutcome {
  int exit_code = 0;
  JobState state;                ///< As of the last generation. Not of an elastic job.
  std::vector<Attempt> earlier;  ///< The generations before it.
};

/// How far the start of a generation is.
struct StartProgress {
  std::size_t ready_hosts = 0;
  std::size_t hosts = 0;
  std::size_t started_ranks = 0;
  std::size_t ranks = 0;
  std::string steps;  ///< As JobDriver::list_steps.
};

/// Thread: the loop's, unless a function says otherwise.
class JobRunner {
 public:
  /// `loop` outlives the runner, and so does request.environment.
  JobRunner(Loop& loop, JobRequest request, RunHandler handler = {});
  ~JobRunner();
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  /// Probes and plans. Blocks. Fails: as probe_job and plan_job.
  Result<JobPlan> plan() const;

  /// Runs `plan`, which may be changed before, to its end; after failures that --max-restarts
  /// allows, probes, plans and runs again with the same number of ranks. Once per runner. Blocks:
  /// runs the loop.
  /// Fails: only before any rank has started; unavailable and io, for what the system refuses.
  Result<JobOutcome> run(JobPlan plan, JobRunnerOptions options = {});

  /// As if the launcher's process had received this signal: SIGTERM stops the job, SIGUSR1 goes to
  /// the ranks, and so on. Thread: any, while run() runs.
  void signal(int number);

  /// Writes text of the caller's own on standard error, in order with the ranks' lines.
  void say(std::string_view text);

  StartProgress progress() const;

 private:
  class Impl;

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::launcher
