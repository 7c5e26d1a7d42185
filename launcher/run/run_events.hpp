// SPDX-License-Identifier: Apache-2.0
// Events that JobRunner reports to its caller while a job runs. References and views are valid
// during the call.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launcher/elastic/driver/elastic_report.hpp"
#include "launcher/job/job_report.hpp"
#include "launcher/job/restart_policy.hpp"
#include "launcher/plan/job_plan.hpp"

namespace horo::launcher {

/// A generation is about to start its agents.
struct GenerationStarting {
  const JobPlan& plan;
  std::string_view starter;     ///< "local, ssh".
  std::string_view rendezvous;  ///< Address of the key-value server; empty: not known yet.
};

/// The agents of all hosts have connected; their ranks start next.
struct HostsReady {
  std::size_t hosts = 0;
  std::string_view rendezvous;
  std::string_view rank_zero;  ///< host:port where rank 0 may listen for torch and JAX.
};

/// A host's agent has reported the control group of its processes, or why there is none.
struct HostControlGroup {
  const JobPlan& plan;
  std::size_t host = 0;
  const ControlGroupInfo& control_group;
};

/// A host's agent has said something on which nobody has to act.
struct HostNoted {
  const JobPlan& plan;
  std::size_t host = 0;
  std::string_view text;
};

/// mpirun or jsrun has printed a line of its own.
struct StarterSaid {
  std::string_view program;
  std::string_view line;
};

/// Every rank of the generation runs.
struct RanksStarted {
  std::size_t hosts = 0;
  std::size_t kept_agents = 0;  ///< Hosts whose agents were the last generation's.
};

/// A rank has written something. The same bytes also go to the screen and to log files.
struct RankWrote {
  Rank rank{0};
  Stream stream = Stream::out;
  std::string_view bytes;
};

/// A batch system announced by this signal that the job's time ends. The ranks get it too.
struct NoticeTaken {
  int signal = 0;
};

/// All ranks of a generation are gone. With `decision.restart` another generation follows.
struct GenerationEnded {
  const ReportInput& report;
  const RestartDecision& decision;
  std::size_t restarts = 0;  ///< Including the one that follows.
};

/// The next generation may use lost hosts again, because the others have too few slots.
struct AllHostsAgain {};

/// A restart was decided, but the job has ended before another generation started: by a signal, a
/// limit or a failure. `report` replaces that of the last generation.
struct NotRestarted {
  const ReportInput& report;
};

/// The members of an elastic job have changed, or are about to.
struct MembershipChanged {
  std::string_view line;
};

/// An agent of an elastic job has reported the control group of its processes, or why there is
/// none.
struct AgentControlGroup {
  std::string_view host;
  const ControlGroupInfo& control_group;
};

/// An agent of an elastic job, or the source of its hosts, has said something on which nobody has
/// to act. `host` is empty for the source.
struct ElasticNoted {
  std::string_view host;
  std::string_view text;
};

/// All workers of an elastic job are gone. With `decision.restart` the job is started again.
struct ElasticEnded {
  const ElasticReportInput& report;
  const RestartDecision& decision;
  std::size_t restarts = 0;  ///< Including the one that follows.
};

/// A restart of an elastic job was decided, but the job has ended before it. `report` replaces that
/// of the last attempt.
struct ElasticNotRestarted {
  const ElasticReportInput& report;
  std::string_view why;
};

using RunEvent = std::variant<MembershipChanged, AgentControlGroup, ElasticNoted, ElasticEnded,
                              ElasticNotRestarted, GenerationStarting, HostsReady, HostControlGroup,
                              HostNoted, StarterSaid, RanksStarted, RankWrote, NoticeTaken,
                              GenerationEnded, AllHostsAgain, NotRestarted>;

/// Called on the loop's thread.
using RunHandler = std::function<void(const RunEvent&)>;

}  // namespace horo::launcher
