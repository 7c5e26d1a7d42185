// SPDX-License-Identifier: Apache-2.0
// The report at the end of a job, for people and for programs: the first failure with its last
// lines of output, and what became of the other ranks. Pure: text from a state.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "launcher/job/job_state.hpp"

namespace horo::launcher {

/// Summary of a generation that was followed by another.
struct Attempt {
  std::string job_id;
  std::string failure;  ///< The report's first line.
  int exit_code = 0;    ///< The exit code of the job, had this been its last generation.
  Duration elapsed{};
};

struct ReportInput {
  const JobState& state;  ///< The generation has ended.
  std::string job_id;
  std::string program;  ///< The command's first word.
  /// Time since this generation began; for the first, since the launcher began.
  Duration elapsed{};
  Duration before{};               ///< From the launcher's begin until this generation's.
  Duration after{};                ///< From this generation's end until the job's.
  std::vector<Attempt> earlier{};  ///< The generations before.
  Duration start_timeout{};
  Duration time_limit{};
  std::vector<std::string> last_lines;  ///< Output of the rank that failed first, if any.
  std::string output_directory;         ///< Folder of all ranks' output files; empty: none.
  int rank_digits = 1;                  ///< Digits in the names of its folders.
  SavedTimeline timeline;               ///< Timelines of the ranks' last moments.
};

/// Lines for standard error, each with its newline. The first line names the first failure. Empty
/// when the job ended well and no process of it is left.
std::string end_report(const ReportInput& input);

/// Lines about a job that ended before its next generation started. Its restart state says why.
std::string not_restarted_report(const JobState& state);

/// For the reports of later generations.
Attempt summarize(const ReportInput& input);

/// One line about a job that ended well, for --verbose.
std::string success_report(const ReportInput& input);

/// One JSON object with a newline, for failures and successes.
std::string json_report(const ReportInput& input);

}  // namespace horo::launcher
