// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop/loop.hpp"
#include "launcher/elastic/membership_events.hpp"
#include "launcher/elastic/membership_orders.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// How the agent of one host is started.
struct ElasticHostPlan {
  AgentSpec spec;         ///< Without workers.
  WorkerIdentity worker;  ///< The fields that all workers of the host have in common.
  std::shared_ptr<Starter> starter;
  bool is_here = false;  ///< The host is this machine.
};

/// The most workers that the agent of a host with so many slots has room for. Slots may be added
/// while it runs, and a new worker may come before the one that it replaces has ended.
int worker_room(int slots);

/// The news of all agents for their owner. Thread: the loop's.
struct ElasticAgentHooks {
  std::function<void(const MembershipEvent&)> tell;
  /// The agent waits for ElasticAgent::begin.
  std::function<void(std::size_t host, const HostFacts& facts)> on_ready;
  std::function<void(std::size_t host)> on_gone;
  std::function<void(Rank worker, Stream stream, std::string_view bytes)> on_output;
  std::function<void(Rank worker)> on_output_end;
  std::function<void(std::size_t host, std::string_view text)> on_note;
  std::function<void(std::size_t host, const ControlGroupInfo& group)> on_control_group;
  std::function<void(const SavedTimeline& saved)> on_timeline;
  std::function<void(std::size_t host, const Answer& answer)> on_answer;
};

/// The agent of one host of an elastic job, and its workers before they can be started.
/// Thread: the loop's.
///
///   none -> planning -> starting -> ready -> running -> ending -> none
///   any -> none (the agent was lost)
class ElasticAgent final : public AgentEvents {
 public:
  enum class Stage : std::uint8_t { none, planning, starting, ready, running, ending };

  struct Times {
    Duration start{};       ///< From the plan's beginning until the agent is ready.
    Duration term_grace{};  ///< How long a host that is told to end keeps its workers.
    Duration close{};  ///< From the order to close, without a worker, until the agent has ended.
  };

  /// `loop` and `hooks` outlive it.
  ElasticAgent(Loop& loop, const ElasticAgentHooks& hooks, std::size_t host, const Times& times)
      : loop_(loop), hooks_(hooks), host_(host), times_(times) {}

  Stage stage() const { return stage_; }

  /// Whether the agent may still turn out to be on another host and tell an address of this one.
  bool may_come_from_elsewhere() const {
    return stage_ == Stage::planning || (stage_ == Stage::starting && !plan_->is_here);
  }

  const HostFacts& facts() const { return facts_; }

  /// The step of the start that takes time; empty: none.
  std::string step() const;

  /// In stage `none`: the host's plan is being made. The number goes with the plan to start().
  int await_plan();
  /// Starts the agent, or reports it as lost. A plan that is not awaited any more has no effect.
  void start(int number, Result<ElasticHostPlan> plan);
  /// In stage `ready`: the workers find the job's store at `store`. The room that the hosts'
  /// networks leave for torch's Gloo is added to their environment.
  void begin(const std::string& store);
  /// The store has no address for this host.
  void fail_begin(const Error& error);

  /// While the launcher is suspended, the time for the start does not pass.
  void suspend();
  void resume();

  // Orders, in any stage.
  void spawn(const StartWorker& worker);
  void end_worker(int worker);
  void notice(const Notice& notice);
  void answer(std::vector<elastic::CallAnswer> answers);
  void end_meeting(std::uint64_t generation);
  void close();
  void signal(int number);
  void stop(const Poison& cause, const std::string& host);
  void kill();
  void output_taken(Rank worker, std::size_t bytes);
  /// As Agent::ask.
  bool ask(const Question& question);

 private:
  void on_ready(const HostFacts& facts) override;
  void on_control_group(const ControlGroupInfo& control_group) override;
  void on_note(std::string_view text) override;
  void on_started(Rank rank, int pid) override;
  void on_spawn_failed(Rank rank, const Error& error) override;
  void on_output(Rank rank, Stream stream, std::string_view bytes) override;
  void on_exit(const RankExit& exit) override;

  void on_called(const std::vector<elastic::MembershipCall>& calls) override;

  void on_stdin_room() override {}

  void on_end_asked(int number) override;
  void on_timeline(const SavedTimeline& saved) override;

  void on_answer(std::size_t part, const Answer& answer) override;

  void on_waiting(int survivors) override { on_finished(survivors); }

  void on_finished(int survivors) override;
  void on_lost(const Error& error) override;

  bool has_agent() const { return agent_ != nullptr && stage_ > Stage::planning; }

  WorkerIdentity identity_of(const StartWorker& worker) const;
  bool forget_queued(int worker);
  void run_start_limit();
  void give_up_plan();
  void give_up_close();
  void give_up_start();
  void leave(const MembershipEvent& last);
  void tell_later(MembershipEvent event);

  Loop& loop_;
  const ElasticAgentHooks& hooks_;
  const std::size_t host_;
  const Times times_;
  Stage stage_ = Stage::none;
  std::optional<ElasticHostPlan> plan_;  ///< Since stage `starting`.
  HostFacts facts_;                      ///< Since stage `ready`.
  std::unique_ptr<Agent> agent_;         ///< After its end until the next start.
  std::vector<StartWorker> queued_;      ///< Before stage `running`.
  int plan_number_ = 0;                  ///< The number of the last plan that was asked for.
  std::optional<Notice> notice_;
  Duration start_left_{};  ///< When start_limit_ was set last, until the agent must be ready.
  TimePoint start_limit_set_{};
  Subscription start_limit_;
  Subscription close_limit_;
  std::set<int> living_;  ///< Workers that were spawned and have not ended.
  std::shared_ptr<const int> alive_ = std::make_shared<const int>(0);  ///< For posted tasks.
};

}  // namespace horo::launcher
