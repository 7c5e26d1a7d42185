// SPDX-License-Identifier: Apache-2.0
// The membership of an elastic job as a pure function: a state and an event give the next state,
// with orders for the driver to carry out. It knows no clock, no process and no loop.
//
//   seeking -> gathering -> running <-> regrouping
//      |           |         |  |            |
//      |           |         |  \-> ending <-/ (a member ended with code 0)
//      v           v         v        |      v
//   stopping (a failure, a signal)    v    stopping
//      \----------------------------> finished
//
// seeking: fewer slots are offered than the job needs. gathering: the workers of the first
// generation start. running: a generation is formed and whole. regrouping: a member was lost, or
// has called; the next generation is formed when the other members have called too. ending: the
// program ends, so no further generation is formed. docs/design/elastic.md gives the rules and
// their reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "launcher/elastic/elastic_hosts.hpp"
#include "launcher/elastic/elastic_rules.hpp"
#include "launcher/elastic/elastic_workers.hpp"
#include "launcher/elastic/membership_events.hpp"
#include "launcher/elastic/membership_orders.hpp"

namespace horo::launcher {

enum class MembershipPhase : std::uint8_t {
  seeking,
  gathering,
  running,
  regrouping,
  ending,
  stopping,
  finished
};

/// The forming of a generation, in the phases seeking, gathering and regrouping.
struct MembershipRound {
  std::optional<TimePoint> since{};      ///< When the generation before broke or a member called.
  std::optional<TimePoint> all_by{};     ///< The first generation waits for all workers until then.
  std::optional<TimePoint> enough_by{};  ///< The job fails if it has no min_np workers then.
  std::vector<LeftMember> left{};        ///< Members lost since the last generation was formed.
  bool wait_told = false;                ///< The user knows that more workers are needed.
  std::size_t look_from = 0;  ///< Index of a worker: the search for one that has not called.
};

/// The announcement of changes to the members of a running generation.
struct MembershipNotices {
  std::uint64_t sequence = 0;          ///< The last one.
  std::vector<int> announced;          ///< The members that the last one would lead to.
  std::optional<TimePoint> joined_by;  ///< A worker that is ready waits for others until then.
};

/// The worker that was the first one to give up each of the last meetings, without a loss. Others
/// call as well then, but only because it did.
struct FirstToGiveUp {
  int worker = -1;    ///< -1: none.
  int meetings = 0;   ///< In a row.
  TimePoint since{};  ///< When it gave up the first of them.
};

/// Why the job ends.
struct MembershipVerdict {
  std::optional<JobEnd> failure;  ///< Set by the first failure that ends the job.
  int signal = 0;                 ///< The signal that asked for the end; 0: none.
  std::string ending;             ///< Why the program is ending; empty: it is not.
  /// The first worker that failed in this generation: its exit code is the job's if all fail.
  std::optional<JobEnd> first_failed;
};

struct MembershipState {
  explicit MembershipState(ElasticRules given) : rules(given), hosts(rules) {}

  ElasticRules rules;
  MembershipPhase phase = MembershipPhase::seeking;
  ElasticHosts hosts;
  ElasticWorkers workers;
  MembershipRound round;
  MembershipNotices notices;
  MembershipVerdict verdict;
  std::uint64_t generation = 0;  ///< The last one formed.
  int resets = 0;                ///< Generations after the first.
  bool state_exists = false;     ///< A worker has entered a generation: its state must survive.
  int unmet = 0;                 ///< Generations in a row that no worker entered.
  std::optional<TimePoint> unmet_since;  ///< When the first of them was formed.
  FirstToGiveUp gave_up;
  std::optional<TimePoint> stop_by;       ///< In `stopping` and `ending`: what remains is killed.
  std::optional<TimePoint> suspended_at;  ///< When the launcher was suspended.
  bool all_ended = false;                 ///< In `ending`: no worker lives any more.
  bool echo_due = false;                  ///< The launcher may get the agents' signal soon.
  bool killed = false;                    ///< The order to kill was given.
  std::optional<TimePoint> wake_at;       ///< As the last orders had it.
  MembershipOrders orders;                ///< For the last event only.
};

/// A job that has no hosts yet. The rules have passed check().
MembershipState begin_membership(const ElasticRules& rules, TimePoint now);

/// An event that makes no sense in `state` (a worker that has ended, a host without an agent, news
/// after the end) changes nothing.
MembershipState next(MembershipState state, const MembershipEvent& event, TimePoint now);

/// Says for people what the job waits for and until when; empty: it waits for nothing.
std::string waiting_for(const MembershipState& state, TimePoint now);

}  // namespace horo::launcher
