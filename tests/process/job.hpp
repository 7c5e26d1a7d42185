// SPDX-License-Identifier: Apache-2.0
// A job on this machine's real agent, and the bounded waits that its tests are made of.
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

/// Longer than any step takes on a busy machine; reached only by a bug.
inline constexpr Duration kLimit = 20s;

launcher::AgentSpec spec_for(int ranks, std::vector<std::string> command);

/// Runs one agent and keeps what it tells.
class Job final : public launcher::AgentEvents {
 public:
  explicit Job(Loop& loop, Duration patience = launcher::kAgentPatience)
      : loop_(loop), starter_(launcher::make_local_starter(loop, patience)) {}

  /// A variable in the environment of every rank that no process outside this job has.
  const std::string& marker() const { return marker_; }

  Status start(launcher::AgentSpec spec);
  /// Runs the loop until `done` or the job's last event. False: kLimit passed.
  bool run_until(std::function<bool()> done);

  /// Until the last event.
  bool run() {
    return run_until([] { return false; });
  }

  launcher::Agent& agent() { return *agent_; }

  void drop_agent() { agent_.reset(); }

  bool over() const { return survivors.has_value() || lost.has_value(); }

  void on_cover(const launcher::Cover& told) override { cover = told; }

  void on_started(Rank rank, int pid) override;
  void on_spawn_failed(Rank rank, const Error& error) override;
  void on_output(Rank rank, launcher::Stream stream, std::string_view bytes) override;
  void on_exit(const launcher::RankExit& exit) override;
  void on_stdin_room() override;
  void on_answer(std::size_t part, const launcher::Answer& answer) override;
  void on_finished(int count) override;
  void on_lost(const Error& error) override;

  std::optional<launcher::Cover> cover;
  std::map<Rank, int> pids;
  std::map<Rank, Error> spawn_failures;
  std::map<Rank, std::string> out;
  std::map<Rank, std::string> err;
  std::map<Rank, std::size_t> bytes;  ///< Of standard output, kept or not.
  std::map<Rank, launcher::RankExit> exits;
  std::vector<Rank> exit_order;
  int rooms = 0;
  int answers = 0;
  bool keep_output = true;
  bool take_output = true;  ///< Tell the agent that it has arrived.
  std::optional<int> survivors;
  std::optional<Error> lost;

 private:
  void check();

  Loop& loop_;
  std::unique_ptr<launcher::Starter> starter_;
  std::unique_ptr<launcher::Agent> agent_;
  std::string marker_;
  std::function<bool()> done_;
};

/// Living processes (zombies are gone) that have `marker` in their environment.
std::vector<int> living_with(const std::string& marker);
/// Children of `pid`, zombies too.
std::vector<int> children_of(int pid);
/// Waits, in steps, until no process with `marker` lives. False: kLimit passed.
bool gone(const std::string& marker);
/// Waits, in steps, until `condition` holds. False: kLimit passed.
bool eventually(const std::function<bool()>& condition);
/// Neither gone nor a zombie.
bool alive(int pid);
/// As in /proc/<pid>/stat: 'S', 'T', 'Z', ...; 'X' when it is gone.
char state_of(int pid);
/// The parent of `pid` from /proc; 0 when it is gone.
int parent_of(int pid);

std::unique_ptr<Loop> make_loop();

/// Absolute path of the program that plays a rank.
std::string actor();

}  // namespace horo::test
