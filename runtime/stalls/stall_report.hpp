// SPDX-License-Identifier: Apache-2.0
// Turns facts about tensors that do not complete into the sentences of a stall report. Pure;
// member_inspector.hpp and stall_watch.hpp gather the facts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/board_header.hpp"
#include "base/clock.hpp"
#include "base/strong.hpp"
#include "runtime/host/process_state.hpp"

namespace horo::runtime {

struct StallTimes {
  Duration warning = std::chrono::seconds(60);  ///< Zero: there are no checks.
  std::optional<Duration> shutdown;             ///< After this time the job ends; none: never.
};

/// How many of warning, 2 * warning, 4 * warning, ... `age` has reached. Each gets one report.
int stall_level(Duration age, Duration warning);

/// The age at which the level after `level` begins.
Duration stall_threshold(int level, Duration warning);

/// Facts about a rank that others wait for.
struct MemberFacts {
  Rank rank;
  std::string host;     ///< Empty: this host.
  std::string verdict;  ///< From its own host; empty: to be made from the following.
  RankState state = RankState::attached;
  ProcessState process = ProcessState::unknown;
  Duration idle{};        ///< Since it last called libhoro; zero: never after horo_init.
  std::string waits_for;  ///< The tensor that one of its callers waits for; empty: none waits.
  SetId waits_in;         ///< The process set of that tensor.
};

/// A tensor that does not complete.
struct Stalled {
  std::string name;
  Duration age{};
  std::vector<std::size_t> missing;     ///< The ranks that it waits for, by place in the members.
  std::vector<std::size_t> undeclared;  ///< Those of `missing` that have never declared it.
  std::size_t more = 0;                 ///< Missing ranks that are not among the members.
  std::string group;                    ///< If it is complete but its group is not: the group.
  bool under_way = false;               ///< It is complete and has started, but does not move.
};

struct StallFacts {
  SetId set;
  std::vector<MemberFacts> members;
  std::vector<Stalled> tensors;
  std::size_t more = 0;  ///< Tensors that wait for the same and are not named.
};

/// "stopped (SIGSTOP, Ctrl-Z)", "busy outside libhoro, which it last called 64 s ago", ...
std::string verdict(const MemberFacts& member, SetId set);

/// One line for all tensors that wait for the same ranks.
std::vector<std::string> stall_lines(const StallFacts& facts);

}  // namespace horo::runtime
