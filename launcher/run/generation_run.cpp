// SPDX-License-Identifier: Apache-2.0
#include "launcher/run/generation_run.hpp"

#include <csignal>
#include <unistd.h>
#include <utility>

#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/log.hpp"
#include "launcher/mpi/mpi_starter.hpp"
#include "launcher/plan/jsrun_plan.hpp"
#include "launcher/plan/same_hosts.hpp"
#include "launcher/run/mixed_starter.hpp"
#include "launcher/run/rank_addresses.hpp"

namespace horo::launcher {

namespace {

/// A host that cannot connect to another within this part of the start timeout leaves that one to
/// the launcher, which may reach it better.
constexpr int kShareToConnect = 3;

std::vector<RankLabel> labels_of(const Placement& placement) {
  std::vector<RankLabel> labels;
  for (const auto& rank : placement.ranks)
    labels.push_back({rank.local_rank, placement.hosts[rank.host].name});
  return labels;
}

}  // namespace

Result<std::unique_ptr<GenerationRun>> GenerationRun::make(Loop& loop, JobPlan plan,
                                                           const Settings& settings,
                                                           Handover before, RunHandler emit) {
  std::unique_ptr<GenerationRun> run(
      new GenerationRun(loop, std::move(plan), settings, std::move(emit)));
  HORO_TRY_STATUS(run->prepare(std::move(before)));
  return run;
}

GenerationRun::GenerationRun(Loop& loop, JobPlan plan, const Settings& settings, RunHandler emit)
    : loop_(loop), plan_(std::move(plan)), settings_(settings), emit_(std::move(emit)) {}

GenerationRun::~GenerationRun() = default;

Status GenerationRun::prepare(Handover before) {
  if (!plan_.starts.uses_other_hosts()) {
    HORO_TRY(rendezvous_, kv::Server::start(loop_, plan_.agents.front().secret, {}));
    for (auto& agent : plan_.agents) {
      for (auto& identity : agent.ranks) identity.rendezvous = rendezvous_->address();
    }
  }
  HORO_TRY(starter_, make_starter(before.hosts));
  HORO_TRY_STATUS(starter_->probe());
  output_.emplace(loop_, plan_.output, labels_of(plan_.placement), std::move(before.logs));
  return {};
}

Result<std::shared_ptr<Starter>> GenerationRun::make_starter(
    const std::optional<StartedHosts>& before) {
  if (!plan_.mpi) {
    if (before) {
      const HostsOfPlan ours{plan_.placement, plan_.starts};
      const HostsOfPlan theirs{before->placement, before->starts};
      same_as_ = find_same_hosts(theirs, ours);
      // It knows the agents through which lost ones are reached again.
      if (is_same(theirs, ours)) return before->starter;
    }
    return std::shared_ptr<Starter>(
        make_mixed_starter(loop_, plan_.placement, plan_.starts,
                           settings_.get(knobs::kStartTimeout) / kShareToConnect));
  }
  auto& mpi = *plan_.mpi;
  if (!mpi.erf.empty()) {
    HORO_TRY(erf_, ScratchFile::write(mpi.erf));
    name_erf(mpi, erf_->path());
  }
  return std::shared_ptr<Starter>(
      make_mpi_starter(loop_, {.command = mpi.command.words,
                               .name = mpi.name,
                               .environment = mpi.environment,
                               .placement = plan_.placement,
                               .here = mpi.here,
                               .say = [this, &mpi](std::string_view line) {
                                 emit_(StarterSaid{.program = mpi.program, .line = line});
                               }}));
}

Handover GenerationRun::hand_over() {
  Handover ours{.logs = output_->take_files()};
  // Every start of mpirun or jsrun has agents of its own.
  if (!plan_.mpi) ours.hosts = StartedHosts{plan_.placement, plan_.starts, starter_};
  return ours;
}

GenerationSpec GenerationRun::take_spec() {
  GenerationSpec spec{.placement = plan_.placement,
                      .this_machine = plan_.this_machine,
                      .agents = std::move(plan_.agents),  // An environment per host is large.
                      .complete = {},
                      .starter = starter_,
                      .output = &*output_,
                      .same_as = same_as_};
  if (plan_.starts.uses_other_hosts()) {
    spec.complete = [this](auto& agents, const auto& facts) { return complete(agents, facts); };
  }
  return spec;
}

Status GenerationRun::complete(std::vector<AgentSpec>& agents,
                               const std::vector<HostFacts>& facts) {
  HORO_TRY(rendezvous_, publish_addresses(loop_, agents, facts));
  const auto& zero = agents.front().ranks.front();
  const auto address = with_port(zero.master_address, zero.master_port);
  emit_(HostsReady{.hosts = agents.size(), .rendezvous = zero.rendezvous, .rank_zero = address});
  return {};
}

void GenerationRun::attach(JobDriver& driver) {
  if (auto monitor = Monitor::open(loop_, monitored(driver, plan_.job_id, plan_.mpi.has_value()))) {
    monitor_ = std::move(*monitor);
  } else {
    log::debug("run", "horo top will see ranks of its own host only: {}", monitor.error().message);
  }
  driver.on_control_group([this](std::size_t host, const ControlGroupInfo& control_group) {
    emit_(HostControlGroup{.plan = plan_, .host = host, .control_group = control_group});
  });
  driver.on_note([this](std::size_t host, std::string_view text) {
    emit_(HostNoted{.plan = plan_, .host = host, .text = text});
  });
  if (settings_.get(knobs::kStdin) != StdinMode::rank0) return;
  stdin_.emplace(loop_, driver, STDIN_FILENO);
  stdin_->start();
}

std::string GenerationRun::rendezvous() const {
  return rendezvous_ ? rendezvous_->address() : std::string();
}

}  // namespace horo::launcher
