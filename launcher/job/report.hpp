// SPDX-License-Identifier: Apache-2.0
// What a person and a program are told when a job has ended: who failed first, how, its last
// words, and what became of the others. Pure: text from a state.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "launcher/job/state.hpp"

namespace horo::launcher {

/// One start of the job that was followed by another, in short.
struct Attempt {
  std::string job_id;
  std::string failure;  ///< The report's first line.
  int exit_code = 0;    ///< Had it been the last.
  Duration elapsed{};
};

struct ReportInput {
  const JobState& state;  ///< Finished.
  std::string job_id;
  std::string program;             ///< The command's first word.
  Duration elapsed{};              ///< Of this attempt, the first from the start of the launcher.
  Duration before{};               ///< Until this attempt began.
  std::vector<Attempt> earlier{};  ///< Attempts.
  Duration start_timeout{};
  Duration time_limit{};
  std::vector<std::string> last_lines;  ///< Of the rank that failed first; none if there is none.
  std::string output_directory;         ///< Where every rank's output is; empty: nowhere.
  int rank_digits = 1;                  ///< Of the folders in `output_directory`.
  SavedTimeline timeline;               ///< The ranks' last moments.
};

/// Lines for standard error, each with its newline. The first names the first failure. Empty when
/// the job ended well and nothing survived it.
std::string end_report(const ReportInput& input);

/// What later reports say of this attempt.
Attempt summarize(const ReportInput& input);

/// The same facts of a job that ended well: one line, for --verbose.
std::string success_report(const ReportInput& input);

/// One JSON object with a newline, for failure and success alike.
std::string json_report(const ReportInput& input);

/// "exit code 3", "killed by signal 11 (SIGSEGV), core dumped", ...
std::string describe(const RankExit& exit);

/// "12 ms", "1.24 s", "3 min 20 s", "2 h 5 min".
std::string describe(Duration duration);

/// "rank 0", "ranks 0, 2-5 and 9"; `ranks` in order.
std::string describe(const std::vector<Rank>& ranks);

}  // namespace horo::launcher
