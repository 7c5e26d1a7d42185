// SPDX-License-Identifier: Apache-2.0
// One mpirun and the agents of its ranks, from the start to the end; behind mpi_starter.hpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/mpi/door.hpp"
#include "launcher/mpi/mpi_starter.hpp"
#include "launcher/mpi/rank_link.hpp"
#include "launcher/output/line_assembler.hpp"

namespace horo::launcher {

/// Thread: the loop's.
class MpiRun : public std::enable_shared_from_this<MpiRun> {
 public:
  MpiRun(Loop& loop, MpiLaunch launch);
  ~MpiRun();
  MpiRun(const MpiRun&) = delete;
  MpiRun& operator=(const MpiRun&) = delete;

  Status probe() const;
  /// The number of a host whose ranks are `spec`'s. With the last mpirun starts.
  std::size_t add_host(const AgentSpec& spec, AgentEvents& events);

  // What agents do, for one host.
  void signal(std::size_t host, int number);
  void stop(std::size_t host, const Poison& cause, std::string_view blamed);
  void kill(std::size_t host);
  void feed_stdin(std::string_view bytes);
  void close_stdin();
  void output_taken(Rank rank, std::size_t bytes);
  /// `part`: the rank's place on its host.
  bool ask(std::size_t host, std::size_t part, const Question& question);
  /// Nobody listens to its events any more.
  void forget(std::size_t host);

 private:
  class MpirunEvents;

  struct Host {
    AgentSpec spec;
    AgentEvents* events = nullptr;
    int survivors = 0;
    bool covered = false;
  };

  struct RankSide {
    std::unique_ptr<RankLink> link;
    bool started = false;
    TimePoint started_at{};
    bool ended = false;  ///< It has ended, or could not be started: everything is told.
    bool over = false;   ///< Its agent has nothing left to do, or is gone.
  };

  Status launch();
  void greet(UniqueFd connection, const MpiPlace& place);
  std::string misplaced(const MpiPlace& place) const;
  AgentSpec spec_of(Rank rank) const;
  void hear(Rank rank, const protocol::Message& message);
  void lose(Rank rank, const Error& error);
  void send(std::size_t host, const protocol::Message& message);
  void stop_all(const Poison& cause, std::string_view blamed);
  void fail_all(Error error);

  /// Agents' news come over connections of their own, so a rank that ended because of another may
  /// be heard of first: a failure waits for what comes in the same moment.
  void settle(const RankExit& exit);
  void tell_exits();

  /// When no agent has anything left to do: lets them go, so that mpirun ends.
  void let_go_when_over();
  void mpirun_said(std::string_view bytes);
  void mpirun_ended(int survivors);
  void conclude_when_silent();
  void conclude();
  std::string mpirun_end() const;

  /// Its place on its host.
  std::size_t part_of(Rank rank) const {
    return launch_.placement.ranks[rank.index()].local_rank.index();
  }

  Host& host_of(Rank rank) { return hosts_[launch_.placement.ranks[rank.index()].host]; }

  Loop& loop_;
  const MpiLaunch launch_;
  const std::unique_ptr<Starter> starter_;  ///< Of mpirun's own agent.
  std::unique_ptr<MpirunEvents> events_;
  std::unique_ptr<Agent> mpirun_;
  std::unique_ptr<Door> door_;
  std::vector<Host> hosts_;
  std::vector<RankSide> ranks_;
  LineAssembler lines_;
  std::string early_stdin_;
  bool early_fed_ = false;
  bool early_close_ = false;
  bool stopping_ = false;
  bool let_go_ = false;
  bool mpirun_gone_ = false;
  bool concluded_ = false;
  std::optional<RankExit> mpirun_exit_;
  std::optional<Error> broken_;  ///< An end that no rank's agent could tell.
  std::vector<RankExit> exits_;  ///< To be told.
  Subscription settling_;
  Subscription patience_;
};

}  // namespace horo::launcher
