// SPDX-License-Identifier: Apache-2.0
// The process between a launcher and a program that it runs: KeptProgram starts it and says what it
// does for its owner.
#pragma once

#include <array>
#include <csignal>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "base/process/process_title.hpp"

namespace horo {

/// All that keeper and program need, prepared before the fork: a child of a program with several
/// threads may neither allocate nor lock.
struct KeeperPlan {
  std::vector<char*> arguments;
  std::vector<std::string> candidates;  ///< Paths of the program, in the order of PATH.
  std::array<int, 3> streams{};
  sigset_t mask{};  ///< The program's signal mask; empty at first.
  const rlimit* fresh_with = nullptr;
  int grace_ms = 0;
  ProcessTitle title;
};

/// Called in the child of a fork, with all signals blocked. It is the keeper until all is ended.
/// `parent`: a pidfd. `report`: a socket of messages. The keeper sends numbers there: the start's
/// error, 0 for none; the program's process group; and the program's wait status. A message from
/// there releases it. It makes only calls that are allowed after a fork of a program with several
/// threads.
[[noreturn]] void run_keeper(const KeeperPlan& plan, int parent, int report);

}  // namespace horo
