// SPDX-License-Identifier: Apache-2.0
// The agents of one job that dial in, one per rank, shown as one agent per host. Used by
// dial_in_starter.hpp, and by mpi_starter.hpp, which also supervises mpirun.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/starters/dial_in/agent_listener.hpp"
#include "launcher/starters/dial_in/dial_in_starter.hpp"
#include "launcher/starters/dial_in/dialled_rank.hpp"
#include "launcher/starters/dial_in/exit_queue.hpp"
#include "launcher/starters/dial_in/rank_zero_input.hpp"

namespace horo::launcher {

/// Thread: the loop's.
class DialInAgents : public std::enable_shared_from_this<DialInAgents> {
 public:
  struct Hooks {
    LaunchAgents launch;
    /// All connections are closed. `complete`: every agent had dialled in and has finished.
    /// Without this hook the agents' news end here; with it, call starter_ended() later.
    std::function<void(bool complete)> on_released{};
    /// Everything is to be killed at once.
    Task on_kill{};
  };

  DialInAgents(Loop& loop, DialInJob job, Hooks hooks);
  ~DialInAgents();
  DialInAgents(const DialInAgents&) = delete;
  DialInAgents& operator=(const DialInAgents&) = delete;

  /// Adds the next host of the placement and returns the launcher's handle of it. Fails:
  /// unsupported (an elastic spec).
  Result<std::unique_ptr<Agent>> add_host(const AgentSpec& spec, AgentEvents& events);

  const AgentSpec& first_spec() const { return hosts_.front().spec; }

  /// Reports the control group to every host that has not reported its own yet.
  void report_control_group(const ControlGroupInfo& control_group);

  /// The job cannot go on, and no rank is the first to blame.
  void fail_all(Error error);

  /// Whether the end was ordered or the connections are closed: what the other system reports about
  /// it is no news.
  bool ending() const { return stop_ordered_ || phase_ != Phase::running; }

  /// The system that started the agents has ended, "ended with exit code 1"; it may have left
  /// `survivors` processes. `by_itself`: with code 0.
  void starter_ended(std::string how, bool by_itself, int survivors);

 private:
  class HostHandle;
  struct Incoming;

  /// running -> released: no agent has anything left to do; their connections are closed.
  /// running, released -> draining: the starting system has ended; last messages may still arrive.
  /// released, draining -> concluded: every host has had its last event.
  enum class Phase : std::uint8_t { running, released, draining, concluded };

  struct Host {
    AgentSpec spec;
    AgentEvents* events = nullptr;  ///< Null: nobody listens any more.
    int survivors = 0;
    bool control_group_known = false;
  };

  Status launch();
  void accept(DialledAgent agent);
  void lose(Rank rank, const Error& error);

  void send(std::size_t host, const protocol::Message& message);
  void stop(std::size_t host, const Poison& cause, std::string_view blamed);
  void kill(std::size_t host);
  void output_taken(Rank rank, std::size_t bytes);
  bool ask(std::size_t host, std::size_t part, const Question& question);

  void release_when_over();
  void release(bool complete);
  void conclude_when_silent();
  void conclude();
  void conclude_host(std::size_t index);

  /// The rank's place on its host.
  std::size_t part_of(Rank rank) const;
  Host& host_of(Rank rank);
  /// The listener for news of `rank`; null once the job has failed as a whole, because everything
  /// after that is a consequence.
  AgentEvents* events_of(Rank rank);

  Loop& loop_;
  const DialInJob job_;
  const Hooks hooks_;
  std::unique_ptr<AgentListener> listener_;
  std::vector<Host> hosts_;
  std::vector<DialledRank> ranks_;
  ExitQueue exits_;
  RankZeroInput input_;
  Phase phase_ = Phase::running;
  bool stop_ordered_ = false;
  std::optional<Error> failure_;  ///< A failure of the whole job, which no agent could report.
  std::string starter_end_ = "ended";
  bool starter_ended_well_ = false;
  Subscription timer_;
};

}  // namespace horo::launcher
