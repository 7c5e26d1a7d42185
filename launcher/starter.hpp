// SPDX-License-Identifier: Apache-2.0
// How the launcher meets a host: a Starter begins one agent there, the agent owns that host's
// ranks, and everything it sees comes back as AgentEvents. Only agents own rank processes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/board_header.hpp"
#include "base/clock.hpp"
#include "base/knobs/choices.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "base/worker_env.hpp"
#include "launcher/questions.hpp"

namespace horo::launcher {

enum class Stream : std::uint8_t { out = 1, err = 2 };

enum class StdinPolicy : std::uint8_t { none = 0, rank0 = 1 };

/// Everything one host's agent needs to know.
struct AgentSpec {
  std::string host;                  ///< As the user wrote it.
  std::vector<std::string> command;  ///< argv of every rank; never passed through a shell.
  std::string directory;             ///< Working directory of the ranks.
  /// Of the ranks of all hosts, once in memory however many those are; null: nothing.
  std::shared_ptr<const Environment> common;
  Environment environment;            ///< Of this host's ranks, over it, beneath what `ranks` add.
  std::vector<WorkerIdentity> ranks;  ///< This host's, in local rank order; board fields unset.
  /// Names that each rank has as its host's agent has them: HOME, and what else is a host's own.
  std::vector<std::string> own_variables;
  StdinPolicy stdin_policy = StdinPolicy::none;
  BindTo bind_to = BindTo::none;  ///< As the agent finds its host.
  GpuMode gpus = GpuMode::off;
  Duration failure_grace{};  ///< For attached ranks to see `peer_lost` and end by themselves.
  Duration grace{};          ///< Between SIGTERM and SIGKILL.
  Epoch epoch{1};
  std::array<std::uint8_t, 32> secret{};
  /// Where the timelines of a job that failed are saved on each host; empty: the agent's choice.
  std::string timeline_directory;
  /// Bytes of a rank's output that may be on their way to the launcher and its readers; 0: any.
  std::uint32_t output_window = 0;
  bool held = false;     ///< Nothing is started before Agent::begin, which has the whole of this.
  Duration heartbeat{};  ///< A host that is silent for so long is lost; 0: of an agent here.
};

/// Where a host is in the network, as its agent found out when it was reached.
struct HostFacts {
  std::string address;           ///< At which the other hosts find it; empty: this machine.
  std::string interface;         ///< That has `address`; empty: not known.
  std::string launcher_address;  ///< At which it finds the launcher; empty: this machine.
  std::vector<int> ports;        ///< Free there: one per rank and one more.
};

/// How one rank ended.
struct RankExit {
  Rank rank{0};
  int wait_status = 0;  ///< As from waitpid.
  bool core_dumped = false;
  bool oom_killed = false;
  bool attached = false;    ///< It had joined a board.
  bool undetached = false;  ///< It ended without leaving it: its peers lose it, whatever its code.
  Rank heard{-1};           ///< The rank by whose end its operations had ended before; -1: none.
  Duration lived{};
};

/// What ends the processes of a host whose guard and agent are killed in the same instant. Without
/// a control group: their own parent, as far as they are its children or carry the job's id.
struct Cover {
  std::string group;   ///< Path of the control group that they all are in; empty: none.
  std::string reason;  ///< Why there is none.
};

/// What became of the last moments of a host's ranks.
struct SavedTimeline {
  int ranks = 0;          ///< That had recorded something and have a file.
  std::string directory;  ///< On that host.
  std::string problem;    ///< Why they could not be saved; empty: they could.
};

/// What an agent reports. Posted to the loop, never called from inside an Agent's own functions.
/// Thread: the loop's.
class AgentEvents {
 public:
  virtual ~AgentEvents() = default;

  /// Once, of an agent that was started with a held spec: it waits for Agent::begin.
  virtual void on_ready(const HostFacts& /*facts*/) {}

  /// Once, before any rank is started.
  virtual void on_cover(const Cover& cover) = 0;
  /// Ranks that have not been started when the job begins to end get no event at all.
  virtual void on_started(Rank rank, int pid) = 0;
  /// The command could not be executed for this rank: not_found (no such program),
  /// permission_denied (not executable), unavailable (no processes or descriptors left), io. The
  /// agent starts no further ranks, stops the others by itself and reports no exit for this one.
  virtual void on_spawn_failed(Rank rank, const Error& error) = 0;
  virtual void on_output(Rank rank, Stream stream, std::string_view bytes) = 0;
  /// After the rank's last output.
  virtual void on_exit(const RankExit& exit) = 0;
  /// The rank took all of the last feed_stdin; now the next one may follow.
  virtual void on_stdin_room() = 0;

  /// The agent was told to end by a signal of the batch system, and waits a moment for orders.
  virtual void on_end_asked(int /*number*/) {}

  /// At most once, when the ranks of a job that failed have ended.
  virtual void on_timeline(const SavedTimeline& /*saved*/) {}

  /// To a question, of the agent `part`.
  virtual void on_answer(std::size_t /*part*/, const Answer& /*answer*/) {}

  /// All ranks and their descendants are gone; `survivors` counts what could not be killed (0).
  /// The last event.
  virtual void on_finished(int survivors) = 0;
  /// The agent ended before on_finished, or spoke nonsense. The last event; the ranks are gone.
  virtual void on_lost(const Error& error) = 0;
};

/// A running agent. Destroying it ends its ranks. Thread: the loop's. Blocks: no.
class Agent {
 public:
  virtual ~Agent() = default;

  /// After on_ready: starts the ranks.
  virtual void begin(const AgentSpec& /*spec*/) {}

  /// What it is at until it is ready, as "connecting to 10.0.0.3:22"; empty: nothing that takes
  /// time.
  virtual std::string step() const { return {}; }

  /// Passes a signal on to every rank's process group.
  virtual void signal(int number) = 0;
  /// Ends all ranks: poisons the board with `cause`, those that use libhoro get `failure_grace`,
  /// the others SIGTERM at once; then SIGTERM, and SIGKILL after `grace`. Idempotent.
  virtual void stop(const Poison& cause, std::string_view host) = 0;
  /// SIGKILL to everything, now.
  virtual void kill() = 0;

  /// All ranks of the job have ended: it need not stay to hear a batch system's signals.
  virtual void dismiss() {}

  /// Standard input of rank 0, under StdinPolicy::rank0 on its host: one call, then one per
  /// on_stdin_room. Bytes that the rank does not want any more are dropped.
  virtual void feed_stdin(std::string_view bytes) = 0;
  virtual void close_stdin() = 0;
  /// Back-pressure: so much more of this rank's output has reached its readers. The agent stops
  /// reading a rank of which `output_window` bytes are on their way.
  virtual void output_taken(Rank rank, std::size_t bytes) = 0;

  /// On_answer follows, if the agent lives. `part`: of several agents on the host, each of which
  /// has one rank, which; else 0. False: there is nobody yet, or any more, to be asked.
  virtual bool ask(std::size_t /*part*/, const Question& /*question*/) { return false; }
};

/// One way to begin on a host (local, ssh, srun, ...).
class Starter {
 public:
  virtual ~Starter() = default;
  virtual std::string_view name() const = 0;
  /// Why it cannot be used here, or success.
  virtual Status probe() const = 0;
  /// `events` outlives the agent. Fails: not_found (no horo-agent), unavailable, io.
  virtual Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) = 0;
};

}  // namespace horo::launcher
