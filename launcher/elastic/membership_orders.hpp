// SPDX-License-Identifier: Apache-2.0
// The orders of the membership machine to the driver of an elastic job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/board_header.hpp"
#include "base/clock.hpp"
#include "launcher/placement.hpp"

namespace horo::launcher {

/// The host has no agent for the first of these orders: the driver starts one. `slot` is free and
/// smaller than the most slots that the host has offered so far, but that number may grow later.
struct StartWorker {
  int worker = 0;
  std::size_t host = 0;
  int slot = 0;          ///< On the board of the host's agent.
  PlacedRank planned{};  ///< Its place if all workers come; `planned.host` counts hosts in use.
  int planned_size = 1;
  bool joins = false;  ///< The others train without it: it comes later, or is a spare.
};

struct WorkerToEnd {
  int worker = 0;
  std::string why;  ///< For people: "did not call within 30 s after the loss of worker 2".
};

/// An answer to the call of a worker that is in no generation.
struct TurnedAway {
  int worker = 0;
  std::uint32_t attempt = 1;
  std::string reason;
};

struct GenerationMember {
  int worker = 0;
  std::uint32_t attempt = 1;  ///< The call that this answers.
  std::size_t host = 0;       ///< Index in MembershipState::hosts.
  int slot = 0;
  PlacedRank place{};  ///< `place.host` is the host index in the generation.
};

/// A member of the generation before that is not in this one.
struct LeftMember {
  int worker = 0;
  std::size_t host = 0;
  std::string why;      ///< "killed by signal 9 (SIGKILL)", "host b is no longer offered".
  bool failed = false;  ///< False: it was asked to leave.
};

struct FormedGeneration {
  std::uint64_t generation = 1;
  std::vector<GenerationMember> members{};  ///< By rank.
  std::uint32_t survivors = 0;              ///< Ranks below were members of the generation before.
  std::uint64_t notice = 0;                 ///< The last notice, which this generation answers.
  std::vector<LeftMember> left{};
  std::vector<int> joined{};  ///< Workers that were not in the generation before.
  std::optional<TimePoint>
      since{};  ///< When the generation before broke or the first member called.
};

/// The kind of failure that ended a job. It decides whether a new start may help.
enum class EndCause : std::uint8_t {
  none,         ///< The job succeeded, or a signal asked for its end.
  worker,       ///< A worker ended by itself; `wait_status` tells how.
  unstartable,  ///< The command or the list of hosts cannot be used.
  shortage,     ///< Hosts were lost or too few, workers did not come in time, or came too often.
  time_limit    ///< --timeout.
};

struct JobEnd {
  int exit_code = 0;
  std::string failure{};        ///< For people; empty: success, or a signal asked for the end.
  std::optional<int> worker{};  ///< The worker that failed first, if one did.
  EndCause cause = EndCause::none;
  int wait_status = 0;  ///< As from waitpid.
};

/// The driver carries these out after each event, in the order in which they stand here.
struct MembershipOrders {
  std::vector<std::string> changes;   ///< One line each for the user, without "horo: ".
  std::optional<std::uint64_t> over;  ///< No rank meets in this generation any more.
  std::vector<WorkerToEnd> end;       ///< SIGTERM, later SIGKILL. WorkerEnded follows.
  std::optional<FormedGeneration> formed;
  std::vector<TurnedAway> removed;
  std::vector<TurnedAway> refused;
  std::optional<Notice> notice;    ///< To the boards of all agents.
  std::vector<StartWorker> start;  ///< WorkerStarted, WorkerNotStarted or AgentLost follows.
  std::vector<std::size_t> close;  ///< Hosts that get no further worker. AgentClosed follows.
  std::optional<int> pass_signal;  ///< To every worker.
  std::optional<Poison> stop;      ///< Stop all agents, for this cause. AgentClosed follows.
  std::string stop_host;           ///< The host of the cause; empty: none.
  bool kill = false;               ///< Kill everything at once.
  std::optional<JobEnd> finish;    ///< The job is over. Agents that are left are destroyed.
  /// Apply Ticked at this time. It replaces the time of earlier orders; none: no tick is needed.
  std::optional<TimePoint> wake_at;
};

}  // namespace horo::launcher
