// SPDX-License-Identifier: Apache-2.0
// The whole life of a job as a pure function: a state and an event give the next state, with the
// orders that it wants carried out. It knows no clock, no process and no loop.
//
//   starting -> running -> finished
//       \          \-> failing  -> finished     a rank, host or time limit failed: stop the others
//        \---------\-> stopping -> finished     a signal to the launcher: stop all
//
// The first failure is kept for ever; what ends after it is a consequence and never replaces it,
// but for the end that it says it came from. One failure needs its consequences: a rank that left
// its peers with code 0 did them no harm when all of them end with 0 too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "launcher/placement.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

enum class Phase : std::uint8_t { starting, running, failing, stopping, finished };

enum class RankPhase : std::uint8_t {
  waiting,  ///< Not spawned yet.
  running,
  ended,        ///< Its RankFate has the exit.
  not_started,  ///< It could not be spawned, or the job ended before.
  lost,         ///< Its host was lost while it ran.
};

struct RankFate {
  RankPhase phase = RankPhase::waiting;
  RankExit exit;               ///< Of `ended`.
  bool after_failure = false;  ///< It ended when the job was already being stopped.
};

enum class FailureKind : std::uint8_t {
  exited,         ///< A rank ended with a code other than 0.
  signalled,      ///< A rank was killed by a signal.
  left,           ///< A rank ended with code 0, attached, and another did not end well after it.
  not_spawned,    ///< A rank could not be started; `error` says why.
  host_lost,      ///< An agent ended before its ranks were gone; `error` says how.
  start_timeout,  ///< Not all ranks were started in time.
  time_limit,     ///< The job's own limit passed.
};

struct FirstFailure {
  FailureKind kind = FailureKind::exited;
  std::optional<Rank> rank;  ///< Who failed; none when no rank is to blame.
  std::size_t host = 0;      ///< Index in the placement; of the rank or the lost host.
  RankExit exit;             ///< Of `exited`, `signalled` and `left`.
  Error error;               ///< Of `not_spawned`, `host_lost` and `start_timeout`.
};

// Events.
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
};

struct HostLost {
  std::size_t host = 0;
  Error error;
};

struct SignalReceived {
  int number = 0;
};

/// A host's agent was signalled to end, as by a batch system that may tell nobody else.
struct EndAsked {
  std::size_t host = 0;
  int number = 0;
};

/// The launcher is about to be stopped by a terminal's Ctrl-Z, and goes on.
struct Suspended {};

struct Resumed {};

struct StartTimedOut {
  std::string where;                ///< What the hosts are at that are not ready; empty: nothing.
  std::vector<std::size_t> late{};  ///< These hosts.
};

struct TimeLimitPassed {};

using JobEvent =
    std::variant<RankStarted, RankNotSpawned, RankEnded, HostFinished, HostLost, SignalReceived,
                 EndAsked, Suspended, Resumed, StartTimedOut, TimeLimitPassed>;

/// What the last step wants done, in this order.
struct Orders {
  std::optional<int> pass_signal;  ///< To every rank.
  std::optional<Poison> stop;      ///< All agents, with this cause, on host `stop_host`.
  std::string stop_host;
  bool kill = false;         ///< All agents, at once.
  bool dismiss = false;      ///< All agents: no rank runs any more.
  bool all_started = false;  ///< The time for starting no longer runs.
  bool finish = false;       ///< Nothing is left to wait for.

  friend bool operator==(const Orders&, const Orders&) = default;
};

struct JobState {
  Phase phase = Phase::starting;
  Placement placement;
  std::vector<RankFate> ranks;         ///< By rank.
  std::vector<bool> host_done;         ///< By host: finished or lost.
  std::vector<std::size_t> bad_hosts;  ///< Not there, or lost, but not only with the way to them.
  std::size_t waiting = 0;             ///< Ranks in that phase.
  std::size_t unended = 0;             ///< Ranks whose end nobody has told.
  std::size_t hosts_left = 0;          ///< Those that are not done.
  std::optional<FirstFailure> first_failure;
  int stop_signal = 0;                    ///< The signal that ended the job; 0: none.
  std::optional<std::size_t> asked_host;  ///< Whose agent got that signal; none: the launcher.
  bool echo_due = false;                  ///< The launcher may get the same signal yet.
  bool interrupted = false;  ///< A signal asked for the end, first or while it was ending.
  int notice_signal = 0;     ///< By which a batch system says that the time ends; 0: by none.
  bool noticed = false;      ///< It has come while the job was not being stopped.
  int survivors = 0;         ///< Processes that could not be killed, on all hosts.
  Orders orders;             ///< Of the last step only.
};

/// A job about to start. After `notice_signal` a rank that ends with exit_code::kQueueAgain has
/// not failed.
JobState initial_state(Placement placement, int notice_signal = 0);

/// An event that makes no sense in `state` (a rank out of range, news after the end) changes
/// nothing.
JobState next(JobState state, const JobEvent& event);

/// Whether a finished job is to be queued again: notice came, and nothing else failed.
bool wants_another_run(const JobState& state);

/// The code a finished job ends with: the first failing rank's, 128 + signal, or exit_code.hpp's.
int exit_code_of(const JobState& state);

/// The shell's view of a wait status: the code, or 128 + signal.
int exit_code_of_status(int wait_status);

/// True when every rank ended with code 0.
bool all_succeeded(const JobState& state);

}  // namespace horo::launcher
