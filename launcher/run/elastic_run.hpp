// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "launcher/elastic/driver/elastic_driver.hpp"
#include "launcher/elastic/driver/host_watch.hpp"
#include "launcher/output/job_output.hpp"
#include "launcher/plan/job_plan.hpp"
#include "launcher/run/host_planner.hpp"
#include "launcher/run/run_events.hpp"

namespace horo::launcher {

/// Runs an elastic job: gives its driver a store, hosts that come and go, plans for them, output
/// and reports. JobRunner is its caller. Thread: the loop's.
class ElasticRun {
 public:
  /// `loop`, `request` and `emit` outlive it. `begin`: when the program began.
  ElasticRun(Loop& loop, const JobRequest& request, const RunHandler& emit, TimePoint begin)
      : loop_(loop), request_(request), emit_(emit), begin_(begin) {}

  ~ElasticRun();
  ElasticRun(const ElasticRun&) = delete;
  ElasticRun& operator=(const ElasticRun&) = delete;

  /// Begins with the hosts of `plan`. `on_closed`: the reader of the output is gone; may be empty.
  /// Fails: only before any worker has started; invalid_argument, unavailable and io.
  Status start(JobPlan plan, std::optional<LogFiles> logs, const Task& on_closed);

  /// A signal to the launcher.
  void signal(int number);

  void suspend() { driver_->suspend(); }

  void resume() { driver_->resume(); }

  void say(std::string_view text) { output_->say(text); }

  /// After the end.
  int exit_code() const { return driver_->end()->exit_code; }

  /// Whether hosts other than this machine take part, or may come.
  bool uses_other_hosts() const {
    return plan_.offer_may_change || plan_.starts.uses_other_hosts();
  }

 private:
  Result<ElasticRules> make_rules() const;
  Status watch_hosts();
  ElasticHandlers handlers();
  void finished();
  std::vector<std::string> last_lines() const;

  Loop& loop_;
  const JobRequest& request_;
  const RunHandler& emit_;
  const TimePoint begin_;
  JobPlan plan_;
  std::optional<JobOutput> output_;
  std::optional<HostPlanner> planner_;
  std::optional<ElasticDriver> driver_;
  std::unique_ptr<HostWatch> watch_;  ///< Null: the hosts do not change.
};

}  // namespace horo::launcher
