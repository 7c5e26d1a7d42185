// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/result.hpp"
#include "runtime/bootstrap/local/agent_bridge.hpp"
#include "runtime/bootstrap/local/local_group.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"

namespace horo::runtime::bootstrap {

/// The parts of watching in an epoch whose board the ranks have made themselves.
struct EpochWatch {
  std::vector<Peer> peers;   ///< Empty: nobody shares the host.
  Duration release_timeout;  ///< As the knob.
  int agents_board = -1;     ///< The board of the agent that watches this rank; -1: none.
  LocalRank there{0};        ///< This rank's slot on it.
  LossNotes notes = LossNotes::told;
};

/// Null if there is nobody to watch. Fails: as watch_peers and bridge_to_agent.
Result<std::unique_ptr<PeerWatcher>> watch_epoch(const Meeting& meeting, EpochWatch watch);

}  // namespace horo::runtime::bootstrap
