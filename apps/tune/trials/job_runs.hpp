// SPDX-License-Identifier: Apache-2.0
// Runs the job of a tuning, as `horo run` runs it, with given settings.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/tune/record/tune_record.hpp"
#include "apps/tune/trials/trial_process.hpp"
#include "apps/tune/trials/trial_space.hpp"
#include "apps/tune/trials/tune_request.hpp"

namespace horo::apps {

/// A folder of this process for files that nobody needs later. Removed with its owner.
class ScratchFolder {
 public:
  /// Fails: io.
  static Result<ScratchFolder> make(const std::string& parent);

  /// In the system's folder for such files. Fails: io.
  static Result<ScratchFolder> make();

  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

/// One line on standard error: on a terminal it is rewritten in place.
class TuneProgress {
 public:
  TuneProgress();

  ~TuneProgress() { erase(); }

  TuneProgress(const TuneProgress&) = delete;
  TuneProgress& operator=(const TuneProgress&) = delete;

  /// Shows what goes on now, on a terminal only.
  void now(std::string_view text);

  /// Adds a line that stays, about something that has happened.
  void done(std::string_view text);

 private:
  void erase();

  const bool terminal_;
  bool shown_ = false;
};

/// "3 min 12 s".
std::string duration_text(double seconds);

/// "at most 3 min 12 s left, ", where `left` was the time `passed` seconds ago; empty: unknown.
std::string time_left_text(std::optional<double> left, double passed);

/// The command that runs the job once. `tool`: the path of horo-run. `extra`: further flags.
launcher::Command job_command(const TuneRequest& request, const std::string& tool,
                              const SettingWords& setting, const std::vector<std::string>& extra);

/// How one run ended.
struct JobRun {
  TrialProcessEnd end;
  std::optional<TuneRecord> log;  ///< The log of the runtime's autotuner, if it wrote one.

  /// The command ended by itself and failed.
  bool failed() const { return !end.was_done && !end.timed_out && !end.status.success(); }

  std::string describe_failure() const;
};

/// Thread: owner.
class JobRuns {
 public:
  /// Fails: not_found (horo-run), io.
  static Result<JobRuns> make(const TuneRequest& request);

  /// Runs the job until it ends, `limit_seconds` pass, or `is_done` says so; it is asked whenever
  /// the log has grown, and five times a second without a log. Fails: the job cannot be started.
  Result<JobRun> run(const SettingWords& setting, const std::vector<std::string>& extra,
                     double limit_seconds,
                     const std::function<bool(const TuneRecord*, double)>& is_done);

  TuneProgress& progress() { return *progress_; }

  /// The last lines that the last run printed.
  std::string last_output() const { return last_lines(output_, 20); }

  const std::string& tool() const { return tool_; }

  const std::string& log() const { return log_; }

 private:
  JobRuns(const TuneRequest& request, std::string tool, ScratchFolder folder, UserSignals signals);

  const TuneRequest& request_;
  std::string tool_;
  ScratchFolder folder_;
  UserSignals signals_;
  std::string log_;
  std::string output_;
  std::unique_ptr<TuneProgress> progress_ = std::make_unique<TuneProgress>();
};

}  // namespace horo::apps
