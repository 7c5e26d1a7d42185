// SPDX-License-Identifier: Apache-2.0
// The whole life of a job as a pure function: a state and an event give the next state, with orders
// for the caller to carry out. It knows no clock, no process and no loop.
//
//   starting -> running --------------------\.
//     |  \         |                         v
//     |   \        \-> failing  ---> (all hosts done) ---> finished
//     |    \-----------^                     |  ^
//     \--------------> stopping -------------/  |
//                                            v  | cancelled, or no hosts in time
//     ^-- next generation is planned --- restarting
//
// failing: a rank, a host or a limit failed, and the others are being stopped. stopping: a signal
// to the launcher asked for the end. restarting: a failed generation has ended, and the policy
// allows another one.
//
// The first failure of a generation is never replaced by a later one, with two exceptions. A rank
// that failed because of another rank's end names that rank, which then becomes the first failure.
// A rank that left its peers with code 0 did no harm if all of them end with 0 too; then it is no
// failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "launcher/job/generation.hpp"
#include "launcher/job/restart_policy.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

enum class Phase : std::uint8_t { starting, running, failing, stopping, restarting, finished };

// Events of the running generation.
struct RankStarted {
  Rank rank;
};

struct RankNotSpawned {
  Rank rank;
  Error error;
};

struct RankEnded {
  RankExit exit;
};

struct HostFinished {
  std::size_t host = 0;
  int survivors = 0;
  TimePoint now{};
};

struct HostLost {
  std::size_t host = 0;
  Error error;
  TimePoint now{};
};

struct SignalReceived {
  int number = 0;
};

/// A signal told a host's agent to end. A batch system may signal agents and not the launcher.
struct AgentSignalled {
  std::size_t host = 0;
  int number = 0;
};

/// The launcher is about to be stopped by a terminal's Ctrl-Z; Resumed follows when it goes on.
struct Suspended {};

struct Resumed {};

struct StartTimedOut {
  std::string where;                ///< The step that each late host is at; empty: none is late.
  std::vector<std::size_t> late{};  ///< The hosts that are not ready.
};

/// Also between two generations.
struct TimeLimitPassed {};

// Events between two generations.

/// The pause before a restart, or before another look for hosts, has passed.
struct PauseOver {
  TimePoint now{};
};

/// The next generation could not be planned: there are too few hosts.
struct PlanFailed {
  Error error;
  TimePoint now{};
};

/// The next generation was planned, but the launcher could not start it.
struct RestartFailed {
  Error error;
};

struct GenerationPlanned {
  Placement placement;
  std::optional<std::size_t> this_machine{};
};

using JobEvent =
    std::variant<RankStarted, RankNotSpawned, RankEnded, HostFinished, HostLost, SignalReceived,
                 AgentSignalled, Suspended, Resumed, StartTimedOut, TimeLimitPassed, PauseOver,
                 PlanFailed, RestartFailed, GenerationPlanned>;

/// The caller carries these out after the last event, in this order.
struct Orders {
  std::optional<int> pass_signal;  ///< Pass this signal to every rank.
  std::optional<Poison> stop;      ///< Stop all agents, for this cause, on host `stop_host`.
  std::string stop_host;
  bool kill = false;              ///< Kill everything at once.
  bool dismiss = false;           ///< Tell all agents that no rank runs any more.
  bool all_started = false;       ///< Stop the start timeout.
  bool end_generation = false;    ///< Every host is done: report the generation's end.
  bool begin_generation = false;  ///< Start the agents of the new generation.
  std::optional<Duration> pause;  ///< Apply PauseOver after this time.
  bool plan = false;              ///< Plan the next generation.
  bool all_hosts_again = false;   ///< Tell the user that avoided hosts are considered again.
  bool finish = false;            ///< The job is over.

  friend bool operator==(const Orders&, const Orders&) = default;
};

/// The time between two generations.
struct RestartState {
  std::vector<TimePoint> times;         ///< When each restart so far was decided.
  RestartDecision decision;             ///< At the end of the last generation.
  std::vector<std::string> avoided;     ///< Hosts that the next generation does without.
  std::optional<TimePoint> give_up_at;  ///< Set by the first attempt to plan.
  std::optional<int> cancelled_by;      ///< The signal that ended the job between two generations.
  std::optional<Error> given_up;        ///< Why no further generation started.
  bool out_of_time = false;             ///< The job's time limit passed between two generations.
};

struct JobState {
  Phase phase = Phase::starting;
  Generation generation;
  int stop_signal = 0;                    ///< The signal that ended the job; 0: none.
  std::optional<std::size_t> asked_host;  ///< The host whose agent got it; none: the launcher did.
  bool echo_due = false;                  ///< The launcher may get the same signal soon.
  bool interrupted = false;               ///< A signal asked for the end of the job.
  int notice_signal = 0;  ///< By which a batch system announces the end of its time; 0: none.
  bool noticed = false;   ///< That signal came while the job was not being stopped.
  RestartPolicy policy;
  RestartState restart;
  Orders orders;  ///< For the last event only.
};

/// How long a restart waits for hosts in total, and between two queries for hosts.
inline constexpr Duration kHostsTimeout = std::chrono::minutes(10);
inline constexpr Duration kHostsPause = std::chrono::seconds(5);

/// A job about to start its first generation. After `notice_signal`, a rank that ends with
/// exit_code::kQueueAgain has not failed.
JobState initial_state(Generation first, int notice_signal = 0, RestartPolicy policy = {});

/// An event that makes no sense in `state` (a rank out of range, news after the end) changes
/// nothing.
JobState next(JobState state, const JobEvent& event);

/// Whether a batch system should queue the job again: notice came, and nothing else failed in this
/// generation or since its end.
bool wants_another_run(const JobState& state);

/// The exit code of a finished job: the first failing rank's, 128 + signal, or one of
/// exit_code.hpp.
int exit_code_of(const JobState& state);

/// A wait status as a shell shows it: the code, or 128 + signal.
int exit_code_of_status(int wait_status);

}  // namespace horo::launcher
