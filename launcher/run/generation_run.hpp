// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kv/server/server.hpp"
#include "base/loop/loop.hpp"
#include "launcher/job/job_driver.hpp"
#include "launcher/job/monitor.hpp"
#include "launcher/mpi/jsrun_command.hpp"
#include "launcher/output/job_output.hpp"
#include "launcher/plan/job_plan.hpp"
#include "launcher/run/run_events.hpp"
#include "launcher/run/stdin_pump.hpp"

namespace horo::launcher {

/// The hosts of a generation whose agents may wait for the next one.
struct StartedHosts {
  Placement placement;
  StartPlan starts;
  std::shared_ptr<Starter> starter;
};

/// A generation takes this over from the one before it.
struct Handover {
  std::optional<LogFiles> logs{};
  std::optional<StartedHosts> hosts{};
};

/// Everything that one generation of a job needs besides its agents: rendezvous, starter, output,
/// standard input and the socket for `horo top`. The driver lets go of its agents before this is
/// destroyed. Thread: the loop's.
class GenerationRun {
 public:
  /// `emit` gets HostsReady, HostControlGroup, HostNoted and StarterSaid. `loop` and `settings`
  /// outlive this. Fails: unavailable and io, for what the system refuses; as Starter::probe.
  static Result<std::unique_ptr<GenerationRun>> make(Loop& loop, JobPlan plan,
                                                     const Settings& settings, Handover before,
                                                     RunHandler emit);
  ~GenerationRun();
  GenerationRun(const GenerationRun&) = delete;
  GenerationRun& operator=(const GenerationRun&) = delete;

  /// For the driver; once. Takes the agents' descriptions out of the plan.
  GenerationSpec take_spec();

  /// For the next generation, when this one is over.
  Handover hand_over();

  /// Connects `driver`, which has just started this generation, to `horo top` and standard input.
  void attach(JobDriver& driver);

  const JobPlan& plan() const { return plan_; }

  JobOutput& output() { return *output_; }

  std::string_view starter_name() const { return starter_->name(); }

  /// Empty: it is known only once every host has connected.
  std::string rendezvous() const;

 private:
  GenerationRun(Loop& loop, JobPlan plan, const Settings& settings, RunHandler emit);

  Status prepare(Handover before);
  Result<std::shared_ptr<Starter>> make_starter(const std::optional<StartedHosts>& before);
  Status complete(std::vector<AgentSpec>& agents, const std::vector<HostFacts>& facts);

  Loop& loop_;
  JobPlan plan_;
  const Settings& settings_;
  const RunHandler emit_;
  std::unique_ptr<kv::Server> rendezvous_;
  std::optional<ScratchFile> erf_;  ///< jsrun's resource file.
  std::shared_ptr<Starter> starter_;
  std::vector<std::optional<std::size_t>> same_as_;  ///< As in GenerationSpec.
  std::optional<JobOutput> output_;
  std::unique_ptr<Monitor> monitor_;  ///< Null: the system has no socket for it.
  std::optional<StdinPump> stdin_;
};

}  // namespace horo::launcher
