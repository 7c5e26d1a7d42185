// SPDX-License-Identifier: Apache-2.0
// How the launcher works with a host: a Starter starts one agent there, the agent owns that host's
// rank processes, and reports what happens to them as AgentEvents.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/board_header.hpp"
#include "base/clock.hpp"
#include "base/elastic/membership_messages.hpp"
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
  /// The variables of the ranks of all hosts, shared by all specs; null: none.
  std::shared_ptr<const Environment> common;
  Environment environment;            ///< Overrides `common`; what `ranks` add overrides both.
  std::vector<WorkerIdentity> ranks;  ///< This host's, in local rank order; board fields unset.
  /// Ranks come and go while the assignment lasts, see Agent::spawn. They are called workers then,
  /// and number_of() tells them apart. `ranks` may be empty.
  bool elastic = false;
  std::uint32_t slots = 0;  ///< Elastic: how many workers may live on the host at once.
  /// Elastic: the time that workers have to leave when the agent was told to end.
  Duration term_grace{};

  /// How many ranks may live on the host at once.
  int places() const { return static_cast<int>(elastic ? slots : ranks.size()); }

  /// Names of variables whose values each rank takes from its host's agent, such as HOME.
  std::vector<std::string> own_variables;
  StdinPolicy stdin_policy = StdinPolicy::none;
  BindTo bind_to = BindTo::none;  ///< The agent applies it to the host as it finds it.
  GpuMode gpus = GpuMode::off;
  Duration failure_grace{};  ///< Time for attached ranks to see `peer_lost` and end themselves.
  Duration grace{};          ///< Between SIGTERM and SIGKILL.
  /// Time for attached ranks to release their peers' memory after a loss, before they are killed.
  Duration release_timeout = std::chrono::seconds(1);
  Epoch epoch{1};  ///< The generation's. Numbers the assignments of an agent.
  /// How long the agent waits for a further assignment when the ranks of this one are gone; 0: it
  /// ends then.
  Duration stay{};
  std::array<std::uint8_t, 32> secret{};
  /// Elastic: WorkerIdentity::membership of all workers. The agent fills it in.
  std::string membership;
  /// Folder for the timelines of a job that failed, on each host; empty: the agent chooses one.
  std::string timeline_directory;
  /// Bytes of a rank's output that may be between the rank and the launcher's readers; 0: no limit.
  std::uint32_t output_window = 0;
  bool held = false;     ///< No rank is started before Agent::begin, which gets the whole spec.
  Duration heartbeat{};  ///< A host that is silent for this long is lost; 0: no heartbeat.
};

/// The number by which launcher and agent call a rank: a worker's number, or else the rank.
inline Rank number_of(const WorkerIdentity& identity) {
  return identity.worker >= 0 ? Rank{identity.worker} : identity.rank;
}

/// A host's place in the network, as its agent found it.
struct HostFacts {
  std::string address;           ///< The other hosts reach it there; empty: this machine.
  std::string interface;         ///< The interface that has `address`; empty: not known.
  std::string launcher_address;  ///< It reaches the launcher there; empty: this machine.
  std::vector<int> ports;        ///< Free ports: one per rank and one more.
};

/// How one rank ended.
struct RankExit {
  Rank rank{0};
  int wait_status = 0;  ///< As from waitpid.
  bool core_dumped = false;
  bool oom_killed = false;
  bool attached = false;    ///< It had attached to the board.
  bool undetached = false;  ///< It ended without detaching: its peers lose it, whatever its code.
  Rank heard{-1};           ///< The rank whose loss had ended its operations before; -1: none.
  Duration lived{};
  std::string gpu_faults{};  ///< GPUs of the host that had failed before, for a rank that failed.
};

/// The control group that holds all processes of a host's agent: killing it ends them even when
/// guard and agent are killed at the same time. Without one, only the processes that the parent of
/// the guard finds by parentage or by the job's id are ended then.
struct ControlGroupInfo {
  std::string path;    ///< The group's folder; empty: there is no group.
  std::string reason;  ///< Why there is no group.
};

/// The timelines that were saved on one host of a job that failed, or on several.
struct SavedTimeline {
  int ranks = 0;          ///< Ranks that have a file, because they had recorded something.
  std::string directory;  ///< On that host; of several, on the first that has one.
  std::string problem;    ///< Why they could not be saved; empty: they were.

  /// Adds those of another host.
  void add(const SavedTimeline& other) {
    ranks += other.ranks;
    if (directory.empty()) directory = other.directory;
    if (problem.empty()) problem = other.problem;
  }
};

/// The reports of one agent. They are posted to the loop, never called from inside a function of
/// Agent. An agent has one assignment after the other (Agent::assign); "once" means once in each.
/// Thread: the loop's.
class AgentEvents {
 public:
  virtual ~AgentEvents() = default;

  /// Once, if the agent was started with a held spec: it waits for Agent::begin.
  virtual void on_ready(const HostFacts& facts) = 0;
  /// Once, before any rank is started: the agent has taken the assignment.
  virtual void on_control_group(const ControlGroupInfo& control_group) = 0;
  /// A sentence about the agent on which nobody has to act. Any number of times.
  virtual void on_note(std::string_view text) = 0;
  /// Ranks that have not been started when the job begins to end get no event at all.
  virtual void on_started(Rank rank, int pid) = 0;
  /// The command could not be executed for this rank: not_found (no such program),
  /// permission_denied (not executable), unavailable (no processes or descriptors left), io. The
  /// agent starts no further ranks, stops the others by itself and reports no exit for this one. In
  /// an elastic assignment the others go on; cancelled: it was to end before it had started.
  virtual void on_spawn_failed(Rank rank, const Error& error) = 0;
  virtual void on_output(Rank rank, Stream stream, std::string_view bytes) = 0;
  /// After the rank's last output.
  virtual void on_exit(const RankExit& exit) = 0;
  /// Workers of an elastic assignment ask for their places in the next generation. Agent::answer
  /// answers, unless the worker ends before.
  virtual void on_called(const std::vector<elastic::MembershipCall>& calls) = 0;
  /// The rank took all of the last feed_stdin: the next one may follow.
  virtual void on_stdin_room() = 0;
  /// A signal of the batch system told the agent to end. It waits a moment for orders. In an
  /// elastic assignment it may be any signal to end, and the agent waits for `term_grace` and
  /// `grace`; then it ends its workers, unless it was told to stop, kill or close. A further signal
  /// ends them at once.
  virtual void on_end_asked(int number) = 0;
  /// At most once, when the ranks of a job that failed have ended.
  virtual void on_timeline(const SavedTimeline& saved) = 0;
  /// The answer of the host's agent number `part` to a question, see Agent::ask.
  virtual void on_answer(std::size_t part, const Answer& answer) = 0;
  /// All ranks and their descendants are gone, and the agent, whose spec asked it to stay, waits
  /// for Agent::assign or Agent::release. `survivors` counts those that could not be killed (0). No
  /// rank's event follows before the next assignment.
  virtual void on_waiting(int survivors) = 0;
  /// All ranks and their descendants are gone, and so is the agent. `survivors` counts those that
  /// could not be killed (0). The last event.
  virtual void on_finished(int survivors) = 0;
  /// The agent ended before on_finished, or sent nonsense. Its ranks are gone. The last event.
  virtual void on_lost(const Error& error) = 0;
};

/// A running agent. Destroying it ends its ranks. Thread: the loop's. Blocks: no.
class Agent {
 public:
  virtual ~Agent() = default;

  /// After on_ready: starts the ranks. Does nothing for an agent whose spec was not held.
  virtual void begin(const AgentSpec& spec) = 0;
  /// After on_waiting: gives the agent a further assignment, as Starter::start does. The epoch is
  /// greater than the last one. False: this agent takes none, because it has ended, or because
  /// another system decides how long it lives.
  virtual bool assign(const AgentSpec& spec) = 0;
  /// No further assignment follows: on_finished follows as soon as there are no ranks.
  virtual void release() = 0;
  /// The step that takes time until the agent is ready: "connecting to 10.0.0.3:22". Empty: none.
  virtual std::string step() const = 0;
  /// Passes a signal on to every rank's process group.
  virtual void signal(int number) = 0;
  /// Ends all ranks: poisons the board with `cause`; ranks that use libhoro get `failure_grace`,
  /// the others SIGTERM at once; then all get SIGTERM, and SIGKILL after `grace`. Idempotent.
  virtual void stop(const Poison& cause, std::string_view host) = 0;
  /// SIGKILL to everything, now.
  virtual void kill() = 0;
  /// All ranks of the job have ended: the agent need not stay to report a batch system's signals.
  virtual void dismiss() = 0;
  /// Standard input of rank 0, under StdinPolicy::rank0 on its host: one call, then one per
  /// on_stdin_room. Bytes that the rank does not read any more are dropped.
  virtual void feed_stdin(std::string_view bytes) = 0;
  virtual void close_stdin() = 0;
  /// Back-pressure: `bytes` more of this rank's output have reached their readers. The agent stops
  /// reading a rank when `output_window` bytes have not.
  virtual void output_taken(Rank rank, std::size_t bytes) = 0;

  // Orders of an elastic assignment. Before Agent::begin they are kept until then.

  /// Starts further workers, each in a free slot of the board; on_started or on_spawn_failed
  /// follows for each. WorkerIdentity::board_slot only says which part of the host the worker gets,
  /// of as many as its planned local size. An agent that has too few slots, or a living worker of
  /// that number, counts the order as nonsense and is lost.
  virtual void spawn(std::vector<WorkerIdentity> workers) = 0;
  /// SIGTERM to one worker and its descendants, SIGKILL after `grace`. Nothing if it has ended.
  virtual void end_worker(Rank worker) = 0;
  /// Tells all workers of the host that the membership is to change, see BoardHeader::notice.
  virtual void notice(std::uint64_t sequence, std::uint32_t flags) = 0;
  /// Answers calls of this host's workers. An answer to a worker that has ended means nothing.
  virtual void answer(std::vector<elastic::CallAnswer> answers) = 0;
  /// The workers that still meet in that generation need not wait for each other.
  virtual void end_meeting(std::uint64_t generation) = 0;
  /// No worker is spawned any more: on_finished (or on_waiting) follows once none lives.
  virtual void close() = 0;

  /// Asks the agent; on_answer follows if it lives. `part`: the number of the agent, where each
  /// rank of the host has an agent of its own; else 0. False: no agent can answer now.
  virtual bool ask(std::size_t part, const Question& question) = 0;
};

/// One way to start agents (local, ssh, srun, ...).
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
