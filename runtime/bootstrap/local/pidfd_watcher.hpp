// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/local/local_group.hpp"
#include "runtime/bootstrap/meeting/peer_watcher.hpp"

namespace horo::runtime::bootstrap {

struct PeerWatchOptions {
  std::string host;  ///< This host's name, for reports.
  /// Time for ranks to release their peers' memory after a loss, before they are killed.
  Duration release_timeout = std::chrono::seconds(1);
};

/// Without an agent every rank watches all others of its host, each by its pidfd, in a thread that
/// sleeps otherwise. (A closed socket would be no sign of an end: forked children keep it open.)
/// It writes the same states as an agent does. Like an agent, it kills a rank that still uses its
/// peers' memory `release_timeout` after the poison, because a stopped rank could write there when
/// it goes on. Fails: unavailable (no descriptors), protocol (no board), io.
Result<std::unique_ptr<PeerWatcher>> watch_peers(int board, std::vector<Peer> peers,
                                                 PeerWatchOptions options);

}  // namespace horo::runtime::bootstrap
