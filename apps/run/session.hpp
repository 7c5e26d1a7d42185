// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "apps/common/run_invocation.hpp"
#include "apps/run/plan.hpp"
#include "apps/run/report_file.hpp"
#include "launcher/job/report.hpp"
#include "launcher/job/restart.hpp"
#include "launcher/output/log_files.hpp"

namespace horo::apps {

/// What the user named for the job to write to.
struct RunFiles {
  std::optional<launcher::LogFiles> logs;  ///< --output-filename.
  ReportFile report;                       ///< --json-report.
};

/// Opens them before the job, so that a wrong path costs no training.
/// Fails: as LogFiles::create and ReportFile::open do.
Result<RunFiles> open_files(const RunInvocation& invocation, int size);

/// The starts of one job, so far.
struct History {
  launcher::RestartPolicy policy;
  TimePoint begin;             ///< Of the program.
  bool pipes_ignored = false;  ///< By whoever started it: a reader that goes ends nothing.
  std::vector<launcher::Attempt> earlier{};  ///< That have ended.
  std::vector<TimePoint> restarts{};         ///< When each of these was followed by another.
};

/// How an attempt ended.
struct RunEnd {
  int code = 0;        ///< The exit code of `horo run`, unless there is another attempt.
  bool again = false;  ///< It is to be followed by another; `history` has it.
  std::vector<std::string> bad_hosts;  ///< That another attempt does better without.
};

/// The number of that signal; 0: there is none.
int number_of(NoticeSignal notice);

/// Runs the plan to its end and says how it ended. Blocks.
/// Fails: before any rank was started only; unavailable and io, for what the system refuses.
Result<RunEnd> run_plan(const RunInvocation& invocation, Plan plan, RunFiles& files,
                        History& history);

}  // namespace horo::apps
