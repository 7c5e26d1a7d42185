// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "base/unique_fd.hpp"
#include "runtime/bootstrap/vigil.hpp"

namespace horo::runtime::bootstrap {

struct BridgeEnds {
  int agents_board = -1;
  int board = -1;
  LocalRank there{0};      ///< This rank's slot on the agent's board.
  LocalRank here{0};       ///< And on the board in use.
  bool same_ranks = true;  ///< Both boards are for the same ranks.
};

/// Under `horo run` the agent watches the ranks through the board that it made, which serves the
/// first epoch only. In every later one this rank stays a member there, so that the agent still
/// tells a loss from an end in good order, and what the agent says there is said on the later
/// `board` too. Under `horo run --mpi` that is so in every epoch, with an agent and a board of its
/// own for each rank. Fails: protocol, io.
Result<std::unique_ptr<Vigil>> bridge_to_agent(const BridgeEnds& ends);

}  // namespace horo::runtime::bootstrap
