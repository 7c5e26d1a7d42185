// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apps/run/progress_line.hpp"
#include "apps/run/report_file.hpp"
#include "base/knobs/settings.hpp"
#include "launcher/run/job_runner.hpp"

namespace horo::apps {

/// Turns a job's events into the text of `horo run`: reports, --verbose, the line that shows the
/// progress of a start, and the file of --json-report. Thread: the loop's.
class RunMessages {
 public:
  /// `loop` and `settings` outlive this.
  RunMessages(Loop& loop, const Settings& settings, ReportFile report)
      : loop_(loop), settings_(settings), report_(std::move(report)) {}

  /// The runner whose events are shown. It outlives this.
  void follow(launcher::JobRunner& runner) { runner_ = &runner; }

  void show(const launcher::RunEvent& event);

 private:
  void take(const launcher::MembershipChanged& event);
  void take(const launcher::AgentControlGroup& event);
  void take(const launcher::ElasticNoted& event);
  void take(const launcher::ElasticEnded& event);
  void take(const launcher::ElasticNotRestarted& event);
  void take(const launcher::GenerationStarting& event);
  void take(const launcher::HostsReady& event);
  void take(const launcher::HostControlGroup& event);
  void take(const launcher::HostNoted& event);
  void take(const launcher::StarterSaid& event);
  void take(const launcher::RanksStarted& event);
  void take(const launcher::RankWrote& event);
  void take(const launcher::NoticeTaken& event);
  void take(const launcher::GenerationEnded& event);
  void take(const launcher::AllHostsAgain& event);
  void take(const launcher::NotRestarted& event);

  void introduce(const launcher::GenerationStarting& event);
  std::string describe_progress() const;
  std::string restart_text(const launcher::RestartDecision& decision, std::size_t restarts) const;
  void say(std::string_view text);

  Loop& loop_;
  const Settings& settings_;
  const ReportFile report_;
  launcher::JobRunner* runner_ = nullptr;
  std::optional<ProgressLine> progress_;  ///< While hosts are being reached.
};

}  // namespace horo::apps
