// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "apps/common/run_invocation.hpp"
#include "apps/run/plan.hpp"
#include "apps/run/report_file.hpp"
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

/// What the program found when it began.
struct History {
  TimePoint begin;             ///< Of the program.
  bool pipes_ignored = false;  ///< By whoever started it: a reader that goes ends nothing.
};

/// Runs the plan to its end and says how it ended: the exit code of `horo run`. Blocks.
/// Fails: before any rank was started only; unavailable and io, for what the system refuses.
Result<int> run_plan(const RunInvocation& invocation, Plan plan, RunFiles files,
                     const History& history);

}  // namespace horo::apps
