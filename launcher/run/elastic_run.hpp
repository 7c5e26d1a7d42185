// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "launcher/elastic/driver/elastic_driver.hpp"
#include "launcher/elastic/driver/host_watch.hpp"
#include "launcher/job/monitor.hpp"
#include "launcher/output/job_output.hpp"
#include "launcher/plan/job_plan.hpp"
#include "launcher/run/host_planner.hpp"
#include "launcher/run/run_events.hpp"

namespace horo::launcher {

/// Runs an elastic job: gives its driver a store, hosts that come and go, plans for them, output
/// and reports. JobRunner is its caller. Thread: the loop's.
class ElasticRun {
 public:
  /// The owner gives the facts of the attempt, and hears of its end.
  struct Owner {
    TimePoint begin{};                    ///< When the attempt began, for reports.
    std::vector<Attempt> earlier;         ///< The attempts before this one.
    std::optional<Duration> time_left{};  ///< This much of --timeout is left.
    Task on_closed{};                     ///< The reader of the output is gone; may be empty.
    Task on_ended;                        ///< All workers have ended.
    Task on_over;                         ///< Later: all output was written.
  };

  /// `loop`, `request` and `emit` outlive it.
  ElasticRun(Loop& loop, const JobRequest& request, const RunHandler& emit, Owner owner)
      : loop_(loop), request_(request), emit_(emit), owner_(std::move(owner)) {}

  ~ElasticRun();
  ElasticRun(const ElasticRun&) = delete;
  ElasticRun& operator=(const ElasticRun&) = delete;

  /// Begins with the hosts of `plan`.
  /// Fails: only before any worker has started; invalid_argument, unavailable and io.
  Status start(JobPlan plan, std::optional<LogFiles> logs);

  /// A signal to the launcher.
  void signal(int number);

  void suspend() { driver_->suspend(); }

  void resume() { driver_->resume(); }

  void say(std::string_view text) { output_->say(text); }

  const MembershipState& state() const { return driver_->state(); }

  /// After the end.
  const JobEnd& end() const { return *driver_->end(); }

  /// The report of the attempt, if it has ended with `end`. `end` and this outlive the
  /// answer.
  ElasticReportInput report(const JobEnd& end) const;

  /// For the next attempt, when this one is over.
  std::optional<LogFiles> take_logs() { return output_->take_files(); }

  bool hosts_may_change() const { return plan_.offer_may_change; }

  /// Whether hosts other than this machine take part, or may come.
  bool uses_other_hosts() const {
    return plan_.offer_may_change || plan_.starts.uses_other_hosts();
  }

 private:
  Result<ElasticRules> make_rules() const;
  Status watch_hosts();
  void open_monitor();
  ElasticHandlers handlers();
  void finished();
  std::vector<std::string> last_lines() const;

  Loop& loop_;
  const JobRequest& request_;
  const RunHandler& emit_;
  const Owner owner_;
  JobPlan plan_;
  std::optional<JobOutput> output_;
  std::optional<HostPlanner> planner_;
  std::optional<ElasticDriver> driver_;
  std::unique_ptr<HostWatch> watch_;  ///< Null: the hosts do not change.
  std::unique_ptr<Monitor> monitor_;  ///< Null: the system has no socket for it.
};

}  // namespace horo::launcher
