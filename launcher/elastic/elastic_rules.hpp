// SPDX-License-Identifier: Apache-2.0
// The user's rules for an elastic job: how many ranks it has, how often it tries again, and how
// long it waits.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "launcher/placement.hpp"

namespace horo::launcher {

/// How long a host that was put aside is not used. Without a range it is never used again.
struct CooldownRange {
  Duration least = std::chrono::seconds(1);  ///< 1 s to 1 h.
  Duration most = std::chrono::hours(1);     ///< From `least` to 1 h.
};

struct ElasticRules {
  int min_np = 1;          ///< No generation has fewer members.
  int max_np = kMaxRanks;  ///< No generation has more members; kMaxRanks: no limit.
  int np = 1;              ///< The slots that the start of the job waits for.
  int spares = 0;          ///< Workers that are kept ready beyond max_np.
  /// How often a failed slot gets a new worker before its host is put aside.
  int slot_restarts = 1;
  /// No other hosts or slots than those of the first offer will ever come.
  bool hosts_are_fixed = false;
  std::optional<CooldownRange> cooldown;
  std::optional<int> reset_limit;  ///< The most generations after the first.
  /// The wait for min_np workers, and the time that members have to leave a host that is no longer
  /// offered.
  Duration elastic_timeout = std::chrono::minutes(10);
  Duration start_timeout = std::chrono::minutes(10);  ///< From a worker's start to its first call.
  /// From a loss, or from the first call of a member, to the calls of all other members; and from
  /// the answer "removed" to the end of the process. Never longer than the elastic timeout.
  Duration rejoin_timeout = std::chrono::minutes(2);
  /// A new worker that is ready waits this long for others that were started too, so that one
  /// change takes in all of them.
  Duration join_window = std::chrono::seconds(2);
  /// From the end of the first member with code 0 to the end of the last one. None: no limit.
  std::optional<Duration> end_timeout;
  /// From the order to stop to the order to kill. Longer than the agents' own grace periods.
  Duration stop_timeout = std::chrono::minutes(2);
  Duration close_timeout = std::chrono::seconds(30);  ///< For agents that have no worker left.
  std::uint64_t seed = 1;                             ///< For the lengths of cooldowns.
};

/// Fails: invalid_argument, naming the rule, its value and what is allowed.
Status check(const ElasticRules& rules);

}  // namespace horo::launcher
