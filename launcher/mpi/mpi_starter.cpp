// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_starter.hpp"

#include <optional>
#include <sys/wait.h>
#include <utility>

#include "base/version.hpp"
#include "launcher/job/describe.hpp"
#include "launcher/output/line_assembler.hpp"
#include "launcher/starters/dial_in/dial_in_agents.hpp"
#include "launcher/starters/local/local_starter.hpp"

namespace horo::launcher {

namespace {

/// For mpirun to end once all its ranks have.
constexpr Duration kMpirunTime = std::chrono::seconds(5);

/// The mpirun process: the only "rank" of an agent on this machine.
class MpirunProcess final : public AgentEvents {
 public:
  MpirunProcess(Loop& loop, MpiLaunch launch)
      : loop_(loop), launch_(std::move(launch)), starter_(make_local_starter(loop)) {}

  Status probe() const { return starter_->probe(); }

  /// `agents` outlives this.
  void serve(DialInAgents& agents) { agents_ = &agents; }

  Status launch(const Environment& variables) {
    const auto& first = agents_->first_spec();
    AgentSpec spec{.host = "this machine",
                   .command = launch_.command,
                   .directory = first.directory,
                   .environment = launch_.environment,
                   .ranks = {{.hostname = first.host,
                              .job_id = first.ranks.front().job_id,
                              .launcher_version = version_code()}},
                   .grace = first.grace,
                   .secret = first.secret};
    spec.environment.insert(spec.environment.end(), variables.begin(), variables.end());
    HORO_TRY(agent_, starter_->start(spec, *this));
    return {};
  }

  /// The ranks' agents are gone: mpirun ends by itself if all of them had started.
  void released(bool complete) {
    if (!complete) return stop();
    timer_ = loop_.after(kMpirunTime, [this] { stop(); });
  }

  void kill() {
    if (agent_) agent_->kill();
  }

  /// mpirun's agent is on this machine, and its spec is not held.
  void on_ready(const HostFacts&) override {}

  void on_control_group(const ControlGroupInfo& control_group) override {
    if (launch_.here) agents_->report_control_group(control_group);
  }

  /// Only about the agent that runs mpirun, not about one of ranks.
  void on_note(std::string_view) override {}

  void on_started(Rank, int) override {}

  void on_spawn_failed(Rank, const Error& error) override {
    agents_->fail_all(Error(error).context(launch_.name));
  }

  void on_output(Rank, Stream, std::string_view bytes) override {
    lines_.feed(bytes, [this](const LinePiece& piece) {
      if (!piece.body.empty()) say(piece);
    });
  }

  void on_exit(const RankExit& exit) override { exit_ = exit; }

  void on_called(const std::vector<elastic::MembershipCall>&) override {}

  void on_stdin_room() override {}

  /// The launcher gets the batch system's signals itself.
  void on_end_asked(int) override {}

  /// mpirun records nothing, and is asked nothing.
  void on_timeline(const SavedTimeline&) override {}

  void on_answer(std::size_t, const Answer&) override {}

  /// mpirun's agent does not stay: every restart has its own mpirun.
  void on_waiting(int) override {}

  void on_finished(int survivors) override { ended(survivors); }

  void on_lost(const Error& error) override {
    agents_->fail_all(error);
    ended(0);
  }

 private:
  /// mpirun's opinion about an end that we have ordered is no news.
  void say(const LinePiece& piece) {
    if (!agents_->ending()) launch_.say(piece.body);
  }

  void stop() {
    if (agent_)
      agent_->stop({.rank = Rank{-1}, .cause = LossCause::aborted, .detail = 0}, "this machine");
  }

  void ended(int survivors) {
    timer_.reset();
    lines_.finish([this](const LinePiece& piece) { say(piece); });
    agents_->starter_ended(describe_end(), exit_ && exit_->wait_status == 0, survivors);
  }

  std::string describe_end() const {
    if (!exit_) return "ended";
    const int status = exit_->wait_status;
    return WIFSIGNALED(status) ? fmt::format("was {}", describe(*exit_))
                               : fmt::format("ended with exit code {}", WEXITSTATUS(status));
  }

  Loop& loop_;
  const MpiLaunch launch_;
  const std::unique_ptr<Starter> starter_;
  DialInAgents* agents_ = nullptr;
  LineAssembler lines_;
  std::optional<RankExit> exit_;
  Subscription timer_;
  std::unique_ptr<Agent> agent_;
};

class MpiStarter final : public Starter {
 public:
  MpiStarter(Loop& loop, MpiLaunch launch) {
    DialInJob job{.placement = launch.placement,
                  .started_by = launch.name,
                  .listen_on = launch.here ? ListenOn::loopback : ListenOn::all_addresses,
                  .variables = RankVariables::from_starting_system};
    auto mpirun = std::make_shared<MpirunProcess>(loop, std::move(launch));
    mpirun_ = mpirun.get();
    // The hooks own mpirun, so it lives as long as the agents.
    agents_ = std::make_shared<DialInAgents>(
        loop, std::move(job),
        DialInAgents::Hooks{
            .launch = [mpirun](const Environment& variables) { return mpirun->launch(variables); },
            .on_released = [mpirun](bool complete) { mpirun->released(complete); },
            .on_kill = [mpirun] { mpirun->kill(); }});
    mpirun_->serve(*agents_);
  }

  std::string_view name() const override { return "mpirun"; }

  Status probe() const override { return mpirun_->probe(); }

  Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) override {
    return agents_->add_host(spec, events);
  }

 private:
  MpirunProcess* mpirun_;
  std::shared_ptr<DialInAgents> agents_;
};

}  // namespace

std::unique_ptr<Starter> make_mpi_starter(Loop& loop, MpiLaunch launch) {
  return std::make_unique<MpiStarter>(loop, std::move(launch));
}

}  // namespace horo::launcher
