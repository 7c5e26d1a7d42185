// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "launcher/job/restart_policy.hpp"
#include "launcher/run/elastic_run.hpp"
#include "launcher/run/planning.hpp"

namespace horo::launcher {

/// Runs an elastic job, and starts it again when it was lost as a whole, as often as --max-restarts
/// allows. Each attempt is a job of its own, with a new id, a new secret and new workers; the
/// program resumes from its files. Thread: the loop's.
class ElasticAttempts {
 public:
  /// `loop`, `request` and `emit` outlive it. `begin`: when the program began.
  ElasticAttempts(Loop& loop, JobRequest& request, const RunHandler& emit, TimePoint begin)
      : loop_(loop), request_(request), emit_(emit), begin_(begin) {}

  /// Begins the first attempt. `on_closed`: the reader of the output is gone; may be empty.
  /// Fails: as ElasticRun::start, and for an invalid --max-restarts.
  Status start(JobPlan plan, std::optional<LogFiles> logs, Task on_closed);

  /// A signal to the launcher. Between two attempts it ends the job.
  void signal(int number);

  void suspend() { run_->suspend(); }

  void resume() { run_->resume(); }

  void say(std::string_view text) { run_->say(text); }

  /// After the end.
  int exit_code() const { return exit_code_; }

  bool uses_other_hosts() const { return run_->uses_other_hosts(); }

 private:
  Status begin(JobPlan plan, std::optional<LogFiles> logs);
  std::optional<Duration> time_left() const;
  void ended();
  void over();
  void plan_next();
  void planned(Result<JobPlan>& plan);
  /// Once for each attempt.
  void say_why_it_waits(const Error& error);
  void give_up(int exit_code, std::string_view why);

  Loop& loop_;
  JobRequest& request_;
  const RunHandler& emit_;
  const TimePoint begin_;
  Task on_closed_;
  RestartPolicy policy_;
  std::vector<TimePoint> restarts_;
  std::vector<Attempt> earlier_;
  /// The attempt that runs, or the last one until the next is planned.
  std::unique_ptr<ElasticRun> run_;
  bool restarting_ = false;  ///< The job waits for its next attempt.
  int exit_code_ = 0;
  std::optional<TimePoint> give_up_at_;  ///< Hosts that are not there until then do not come.
  bool waits_for_hosts_ = false;         ///< The user knows that the next attempt has no hosts.
  Subscription pause_;
  Subscription limit_;  ///< --timeout, while `restarting_`.
  std::optional<Planning> planning_;
};

}  // namespace horo::launcher
