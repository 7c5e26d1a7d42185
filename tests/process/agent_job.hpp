// SPDX-License-Identifier: Apache-2.0
// A job with a real agent on this machine, and waits with a limit for its tests.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include "launcher/starters/local/local_starter.hpp"

namespace horo::test {

using namespace std::chrono_literals;

/// Longer than any step takes on a busy machine: only a bug reaches it.
inline constexpr Duration kLimit = 20s;

launcher::AgentSpec spec_for(int ranks, std::vector<std::string> command);

/// As spec_for, for an elastic job with so many slots. It begins with the workers 0, 1, ...
launcher::AgentSpec elastic_spec_for(int workers, int slots, std::vector<std::string> command);

/// Runs one agent and keeps its events.
class Job final : public launcher::AgentEvents {
 public:
  explicit Job(Loop& loop, Duration end_timeout = launcher::kAgentEndTimeout)
      : loop_(loop), starter_(launcher::make_local_starter(loop, end_timeout)) {}

  /// A variable in the environment of every rank that no process outside this job has.
  const std::string& marker() const { return marker_; }

  Status start(launcher::AgentSpec spec);
  /// As Agent::assign.
  bool assign(launcher::AgentSpec spec);
  /// As Agent::spawn, for workers of these numbers.
  void spawn(const std::vector<int>& workers);
  /// Runs the loop until `done` or the job's last event. False: kLimit passed.
  bool run_until(std::function<bool()> done);

  /// Runs the loop until the last event.
  bool run() {
    return run_until([] { return false; });
  }

  launcher::Agent& agent() { return *agent_; }

  void drop_agent() { agent_.reset(); }

  bool over() const { return survivors.has_value() || lost.has_value(); }

  void on_ready(const launcher::HostFacts&) override {}

  void on_control_group(const launcher::ControlGroupInfo& told) override { control_group = told; }

  void on_note(std::string_view) override {}

  void on_end_asked(int) override;

  void on_timeline(const launcher::SavedTimeline&) override {}

  void on_started(Rank rank, int pid) override;
  void on_spawn_failed(Rank rank, const Error& error) override;
  void on_output(Rank rank, launcher::Stream stream, std::string_view bytes) override;
  void on_exit(const launcher::RankExit& exit) override;
  void on_called(const std::vector<elastic::MembershipCall>& calls) override;
  void on_stdin_room() override;
  void on_answer(std::size_t part, const launcher::Answer& answer) override;
  void on_waiting(int) override;
  void on_finished(int count) override;
  void on_lost(const Error& error) override;

  std::optional<launcher::ControlGroupInfo> control_group;
  std::map<Rank, int> pids;
  std::map<Rank, Error> spawn_failures;
  std::map<Rank, std::string> out;
  std::map<Rank, std::string> err;
  std::map<Rank, std::size_t> bytes;  ///< Bytes of standard output, kept or not.
  std::map<Rank, launcher::RankExit> exits;
  std::vector<Rank> exit_order;
  std::vector<elastic::MembershipCall> calls;
  int call_messages = 0;  ///< Messages of the agent that had calls.
  int rooms = 0;
  int answers = 0;
  int ends_asked = 0;
  int waits = 0;  ///< How often the agent has begun to wait for a further assignment.
  bool keep_output = true;
  bool take_output = true;  ///< Tells the agent that output has been read.
  std::optional<int> survivors;
  std::optional<Error> lost;

 private:
  void check();
  void mark(launcher::AgentSpec& spec) const;

  Loop& loop_;
  std::unique_ptr<launcher::Starter> starter_;
  std::unique_ptr<launcher::Agent> agent_;
  std::string marker_;
  std::function<bool()> done_;
};

/// The living processes, without zombies, that have `marker` in their environment.
std::vector<int> living_with(const std::string& marker);
/// The children of `pid`, including zombies.
std::vector<int> children_of(int pid);
/// Waits, in steps, until no process with `marker` lives. False: kLimit passed.
bool gone(const std::string& marker);
/// Waits, in steps, until `condition` holds. False: kLimit passed.
bool eventually(const std::function<bool()>& condition);
/// True if it exists and is no zombie.
bool alive(int pid);
/// The state in /proc/<pid>/stat: 'S', 'T', 'Z', ...; 'X' when it does not exist.
char state_of(int pid);
/// The parent of `pid` from /proc; 0 when it does not exist.
int parent_of(int pid);

std::unique_ptr<Loop> make_loop();

/// Absolute path of the program that plays a rank.
std::string actor();

}  // namespace horo::test
