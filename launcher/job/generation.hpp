// SPDX-License-Identifier: Apache-2.0
// One generation of a job: a placement of its ranks, and what has become of each. A job that is not
// restarted has one generation; every restart begins another.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "launcher/placement.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

enum class RankPhase : std::uint8_t {
  waiting,  ///< Not spawned yet.
  running,
  ended,        ///< Its RankFate has the exit.
  not_started,  ///< It could not be spawned, or the generation ended before that.
  lost,         ///< Its host was lost while it ran.
};

struct RankFate {
  RankPhase phase = RankPhase::waiting;
  RankExit exit;               ///< Valid in phase `ended`.
  bool after_failure = false;  ///< It ended when the job was already being stopped.
};

enum class FailureKind : std::uint8_t {
  exited,         ///< A rank ended with a code other than 0.
  signalled,      ///< A rank was killed by a signal.
  left,           ///< A rank ended with code 0 while attached, and a later end was not good.
  not_spawned,    ///< A rank could not be started; `error` says why.
  host_lost,      ///< An agent ended before its ranks were gone; `error` says how.
  start_timeout,  ///< Not all ranks were started in time.
  time_limit,     ///< The job's own limit passed.
};

struct FirstFailure {
  FailureKind kind = FailureKind::exited;
  std::optional<Rank> rank;  ///< The rank that failed; none when no rank is to blame.
  std::size_t host = 0;      ///< Index in the placement: the rank's host, or the lost host.
  RankExit exit;             ///< For `exited`, `signalled` and `left`.
  Error error;               ///< For `not_spawned`, `host_lost` and `start_timeout`.
};

struct Generation {
  Epoch epoch{1};  ///< 1, 2, ... within the job.
  Placement placement;
  std::optional<std::size_t> this_machine;  ///< The host that is this machine, if any is.
  std::vector<RankFate> fates;              ///< By rank.
  std::vector<bool> host_done;              ///< By host: its agent has finished or was lost.
  /// Hosts that could not be reached or were lost. A host is not listed when only an agent between
  /// it and the launcher was lost.
  std::vector<std::size_t> bad_hosts;
  std::size_t waiting = 0;     ///< Ranks in phase `waiting`.
  std::size_t unended = 0;     ///< Ranks without a reported exit.
  std::size_t hosts_left = 0;  ///< Hosts that are not done.
  std::optional<FirstFailure> first_failure;
  int survivors = 0;  ///< Processes that could not be killed, on all hosts.

  bool has(Rank rank) const { return rank.value() >= 0 && rank.index() < fates.size(); }

  const PlacedHost& host(std::size_t index) const { return placement.hosts[index]; }

  std::size_t host_of(Rank rank) const { return placement.ranks[rank.index()].host; }

  /// True when every rank ended with code 0.
  bool all_succeeded() const;
};

/// A generation about to start.
Generation make_generation(Epoch epoch, Placement placement,
                           std::optional<std::size_t> this_machine = {});

}  // namespace horo::launcher
