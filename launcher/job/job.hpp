// SPDX-License-Identifier: Apache-2.0
// Carries out what the job's state machine orders: starts the agents, feeds their news to it, and
// keeps the clocks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/loop/loop.hpp"
#include "launcher/job/state.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

class Output;

struct JobSpec {
  Placement placement;
  std::vector<AgentSpec> agents;  ///< One per host of the placement, in its order.
  /// Completes held `agents` with what is known once every host is ready; then their ranks begin.
  /// None: nothing is missing.
  std::function<Status(std::vector<AgentSpec>&, const std::vector<HostFacts>&)> complete;
  Duration start_timeout{};
  std::optional<Duration> time_limit;
  int notice_signal = 0;  ///< As in JobState.
};

/// One job from its start to its end. Thread: the loop's. Destroying it ends what still runs.
class Job {
 public:
  /// All outlive the job. `on_finished` is called once, when nothing of the job is left, in a turn
  /// of the loop of its own.
  Job(Loop& loop, Starter& starter, Output& output, JobSpec spec, Task on_finished);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Starts every agent. A host that cannot be started fails the job, which then ends as any other:
  /// on_finished follows.
  void start();

  /// A signal to the launcher.
  void signal(int number);

  /// Stops all ranks, and the time of start and job limits with them, until resume().
  void suspend();
  void resume();

  /// Standard input of rank 0: one feed, then one after each call of `task`.
  void on_stdin_room(Task task) { on_stdin_room_ = std::move(task); }

  void feed_stdin(std::string_view bytes);
  void close_stdin();

  /// What ends the processes of a host, and the host's number; once per host.
  void on_cover(std::function<void(std::size_t, const Cover&)> task) {
    on_cover_ = std::move(task);
  }

  /// Called whenever a rank starts.
  void on_rank_started(Task task) { on_rank_started_ = std::move(task); }

  /// Called before what a rank writes is shown.
  void on_output(Task task) { on_output_ = std::move(task); }

  /// As Agent::ask, of that host's.
  bool ask(std::size_t host, std::size_t part, const Question& question);

  /// Host, part, and the answer.
  void on_answer(std::function<void(std::size_t, std::size_t, const Answer&)> task) {
    on_answer_ = std::move(task);
  }

  std::size_t ready_hosts() const { return ready_; }

  /// "host a: connecting to 10.0.0.3:22; host b: ...": of hosts that are not ready, the first few.
  std::string list_steps() const;

  const JobState& state() const { return state_; }

  /// Of all hosts that have ended: how many ranks' last moments are in files, and where on the
  /// first such host.
  const SavedTimeline& timeline() const { return timeline_; }

 private:
  class HostLink;

  void host_ready(std::size_t host, const HostFacts& facts);
  std::vector<std::size_t> late_hosts() const;
  void begin_ranks();
  void apply(const JobEvent& event);
  void carry_out(const Orders& orders);
  void order_agents(const Orders& orders);
  void run_clocks();

  Loop& loop_;
  Starter& starter_;
  Output& output_;
  JobSpec spec_;
  Task on_finished_;
  Task on_stdin_room_;
  std::function<void(std::size_t, const Cover&)> on_cover_;
  std::function<void(std::size_t, std::size_t, const Answer&)> on_answer_;
  JobState state_;
  SavedTimeline timeline_;
  Task on_rank_started_;
  Task on_output_;
  std::vector<std::unique_ptr<HostLink>> hosts_;
  std::vector<HostFacts> facts_;  ///< By host, of those that are ready.
  std::size_t ready_ = 0;
  TimePoint begun_{};
  std::optional<TimePoint> suspended_;
  Duration stood_still_{};  ///< In all, before now.
  Subscription start_timer_;
  Subscription limit_timer_;
};

}  // namespace horo::launcher
