// SPDX-License-Identifier: Apache-2.0
// Verdicts on tensors that do not complete: facts in, sentences out. Pure; stall_watch.hpp gathers
// the facts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/board_header.hpp"
#include "base/clock.hpp"
#include "base/strong.hpp"
#include "runtime/coordinator/process_state.hpp"

namespace horo::runtime {

struct StallTimes {
  Duration warning = std::chrono::seconds(60);  ///< Zero: nobody looks.
  std::optional<Duration> shutdown;             ///< Then the job ends.
};

/// How many of warning, 2 * warning, 4 * warning, ... `age` has reached: one report at each.
int stall_level(Duration age, Duration warning);

/// The age at which the level after `level` begins.
Duration stall_threshold(int level, Duration warning);

/// What is known of a rank that others wait for.
struct MemberFacts {
  Rank rank;
  std::string host;     ///< Empty: this one.
  std::string verdict;  ///< By its own host; empty: the following tells.
  RankState state = RankState::attached;
  ProcessState process = ProcessState::unknown;
  Duration idle{};        ///< Since it last called libhoro; zero: it never did after horo_init.
  std::string waits_for;  ///< The tensor that a caller of it waits for; empty: nobody waits.
  SetId waits_in;         ///< The process set of that tensor.
};

/// A tensor that does not complete.
struct Stalled {
  std::string name;
  Duration age{};
  std::vector<std::size_t> missing;     ///< Whose part is lacking: positions in the members.
  std::vector<std::size_t> undeclared;  ///< Those of them that have never declared it.
  std::size_t more = 0;                 ///< Ranks missing that are not among the members.
  std::string group;       ///< It is complete, and other tensors of this group are not.
  bool under_way = false;  ///< It is complete and running, but nothing moves.
};

struct StallFacts {
  SetId set;
  std::vector<MemberFacts> members;
  std::vector<Stalled> tensors;
  std::size_t more = 0;  ///< Tensors that wait alike and are not named.
};

/// "stopped (SIGSTOP, Ctrl-Z)", "busy outside libhoro, which it last called 64 s ago", ...
std::string verdict(const MemberFacts& member, SetId set);

/// A line for each group of tensors that wait for the same ranks.
std::vector<std::string> stall_lines(const StallFacts& facts);

}  // namespace horo::runtime
