// SPDX-License-Identifier: Apache-2.0
// The report at the end of an elastic job, for people and for programs. Pure: text from values.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "launcher/elastic/driver/elastic_history.hpp"
#include "launcher/job/job_report.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

struct ElasticReportInput {
  const JobEnd& end;
  const ElasticHistory& history;
  int signal = 0;  ///< The signal that asked for the end; 0: none.
  std::string job_id;
  std::string program;                  ///< The command's first word.
  TimePoint begun{};                    ///< When the attempt began; for the first, the launcher.
  Duration elapsed{};                   ///< Since then.
  std::vector<Attempt> earlier;         ///< The attempts before this one.
  std::vector<std::string> last_lines;  ///< Output of the worker that failed first, if any.
  std::string output_directory;         ///< Folder of all workers' output files; empty: none.
  int rank_digits = 1;                  ///< Digits in the names of its folders.
  SavedTimeline timeline;
};

/// Lines for standard error, each with its newline. Empty when the job ended well.
std::string end_report(const ElasticReportInput& input);

/// One line about a job that ended well, for --verbose.
std::string success_report(const ElasticReportInput& input);

/// For the reports of later attempts.
Attempt summarize(const ElasticReportInput& input);

/// One JSON object with a newline. docs/guide/elastic.md has its fields.
std::string json_report(const ElasticReportInput& input);

}  // namespace horo::launcher
