// SPDX-License-Identifier: Apache-2.0
// Carries out the orders of the job's state machine: starts the agents of each generation, feeds
// their news to the machine, and keeps the clocks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/loop/loop.hpp"
#include "launcher/job/job_agents.hpp"
#include "launcher/job/job_state.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

class JobOutput;

/// Everything that one generation needs to run. The output outlives the generation.
struct GenerationSpec {
  Placement placement;
  std::optional<std::size_t> this_machine{};  ///< The host that is this machine, if any is.
  std::vector<AgentSpec> agents;              ///< One per host of the placement, in its order.
  /// Completes held `agents` with what is known once every host is ready; then their ranks begin.
  /// Empty: nothing is missing.
  std::function<Status(std::vector<AgentSpec>&, const std::vector<HostFacts>&)> complete{};
  /// Agents that stay keep it, because their connections use it.
  std::shared_ptr<Starter> starter{};
  JobOutput* output = nullptr;
  /// By host: the host of the generation before whose agent may go on here. It does if it still
  /// waits. None, or empty for all: the host gets a new agent.
  JobAgents::SameAs same_as{};
};

/// Settings for the whole job.
struct JobSpec {
  Duration start_timeout{};            ///< For each generation.
  std::optional<Duration> time_limit;  ///< For all generations together.
  int notice_signal = 0;               ///< As in JobState.
  RestartPolicy policy{};
};

/// The driver's calls to its owner. Every task is posted to the loop, never called inline.
struct JobHandlers {
  /// A generation has ended. state().phase says what follows: finished or restarting.
  Task on_ended;
  /// Plan the next generation, then call begin() or plan_failed(). Not needed without restarts.
  Task on_plan{};
  /// The next plan does not avoid lost hosts any more, because the others have too few slots.
  Task on_all_hosts_again{};
  /// The job is over. Once, after the last on_ended.
  Task on_finished;
};

/// One job from its first start to its end. Thread: the loop's. Destroying it ends what still runs.
class JobDriver {
 public:
  /// `loop` outlives the driver.
  JobDriver(Loop& loop, JobSpec spec, GenerationSpec first, JobHandlers handlers);
  ~JobDriver();
  JobDriver(const JobDriver&) = delete;
  JobDriver& operator=(const JobDriver&) = delete;

  /// Starts every agent. A host that cannot be started fails the job, which then ends like any
  /// other failed job.
  void start();

  /// After on_ended in phase restarting: begins the pause before the next generation. The output is
  /// not used any more, and neither are the tasks of the generation: on_stdin_room,
  /// on_control_group, on_note and on_answer. Agents that wait for an assignment stay.
  void restart();
  /// Answers on_plan: starts the next generation.
  void begin(GenerationSpec next);
  /// Answers on_plan: there are too few hosts.
  void plan_failed(const Error& error);
  /// Answers on_plan: the launcher itself cannot start the next generation.
  void restart_failed(const Error& error);

  /// A signal to the launcher.
  void signal(int number);

  /// Stops all ranks, and the clocks of start timeout and time limit, until resume().
  void suspend();
  void resume();

  /// Standard input of rank 0: one feed, then one after each call of `task`.
  void on_stdin_room(Task task) { on_stdin_room_ = std::move(task); }

  void feed_stdin(std::string_view bytes);
  void close_stdin();

  /// Once per host and generation: the host's number, and what ends its processes if its agent is
  /// killed.
  void on_note(std::function<void(std::size_t, std::string_view)> task) {
    on_note_ = std::move(task);
  }

  void on_control_group(std::function<void(std::size_t, const ControlGroupInfo&)> task) {
    on_control_group_ = std::move(task);
  }

  /// Called whenever a rank starts.
  void on_rank_started(Task task) { on_rank_started_ = std::move(task); }

  /// Called with everything that ranks write, before it is shown.
  void on_output(std::function<void(Rank, Stream, std::string_view)> task) {
    on_output_ = std::move(task);
  }

  /// When the job is over, the driver waits for agents that have been told to leave. False: there
  /// are none. Else it waits no longer, and on_ended and on_finished follow.
  bool stop_waiting();

  /// Agents of this generation that were the last generation's.
  std::size_t kept_agents() const { return agents_.reused(); }

  /// As Agent::ask, for the agent of `host`.
  bool ask(std::size_t host, std::size_t part, const Question& question);

  /// Host, part, and the answer.
  void on_answer(std::function<void(std::size_t, std::size_t, const Answer&)> task) {
    on_answer_ = std::move(task);
  }

  std::size_t ready_hosts() const;

  /// "host a: connecting to 10.0.0.3:22; host b: ...": the first few hosts that are not ready.
  std::string list_steps() const { return agents_.list_steps(); }

  const JobState& state() const { return state_; }

  /// Saved timelines of the current generation's hosts: how many ranks, and the first folder.
  const SavedTimeline& timeline() const { return timeline_; }

 private:
  class HostNews;

  void start_agents();
  bool may_replace(std::size_t host);
  void tell_ends();
  void pause(Duration duration);
  void host_ready(std::size_t host, const HostFacts& facts);
  void begin_ranks();
  void apply(const JobEvent& event);
  void carry_out(const Orders& orders);
  void order_agents(const Orders& orders);
  void run_clocks();
  void stop_clocks();
  void post(const Task& task);

  Loop& loop_;
  const JobSpec spec_;
  const JobHandlers handlers_;
  JobState state_;
  GenerationSpec generation_;
  std::vector<std::unique_ptr<HostNews>> news_;  ///< By host.
  JobAgents agents_;
  std::vector<std::optional<HostFacts>> facts_;  ///< By host; none: it is not ready.
  bool ranks_begun_ = false;                     ///< All hosts were ready.
  SavedTimeline timeline_;

  Task on_stdin_room_;
  std::function<void(std::size_t, const ControlGroupInfo&)> on_control_group_;
  std::function<void(std::size_t, std::string_view)> on_note_;
  std::function<void(std::size_t, std::size_t, const Answer&)> on_answer_;
  Task on_rank_started_;
  std::function<void(Rank, Stream, std::string_view)> on_output_;

  TimePoint job_begun_{};
  TimePoint begun_{};  ///< The current generation.
  Duration pause_before_restart_{};
  std::optional<TimePoint> suspended_;
  Duration suspended_before_{};   ///< In this generation, without a suspension that still lasts.
  Duration suspended_earlier_{};  ///< In the generations before, and in the pauses between them.
  bool ended_due_ = false;        ///< on_ended is to follow when no agent is left.
  bool finished_due_ = false;     ///< The same for on_finished.
  Subscription start_timer_;
  Subscription limit_timer_;
  Subscription pause_timer_;
};

}  // namespace horo::launcher
