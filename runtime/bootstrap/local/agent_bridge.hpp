// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "base/unique_fd.hpp"
#include "runtime/bootstrap/meeting/peer_watcher.hpp"

namespace horo::runtime::bootstrap {

/// Whether the agent learns which rank's loss ends this rank. It cannot use that in an elastic job,
/// where it counts workers and not ranks.
enum class LossNotes { told, kept };

struct BridgeEnds {
  int agents_board = -1;
  int board = -1;
  LocalRank there{0};      ///< This rank's slot on the agent's board.
  LocalRank here{0};       ///< This rank's slot on the board in use.
  bool same_ranks = true;  ///< Both boards are for the same ranks.
  LossNotes notes = LossNotes::told;
};

/// Under `horo run` the agent watches the ranks through the board that it made, which serves the
/// first epoch only. In every later epoch this rank stays attached there, so that the agent can
/// still tell a loss from a regular exit, and the agent's poison is copied to the later `board`.
/// Under `horo run --mpi` the same holds in every epoch, with an agent and a board of its own for
/// each rank. Fails: protocol, io.
Result<std::unique_ptr<PeerWatcher>> bridge_to_agent(const BridgeEnds& ends);

}  // namespace horo::runtime::bootstrap
