// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/epoch_watch.hpp"

#include <utility>

#include "runtime/bootstrap/local/pidfd_watcher.hpp"

namespace horo::runtime::bootstrap {

namespace {

/// Watches for both the peers and this rank's agent.
class Both final : public PeerWatcher {
 public:
  Both(std::unique_ptr<PeerWatcher> peers, std::unique_ptr<PeerWatcher> agent)
      : peers_(std::move(peers)), agent_(std::move(agent)) {}

  void note_loss(Rank lost) override { agent_->note_loss(lost); }

 private:
  std::unique_ptr<PeerWatcher> peers_;
  std::unique_ptr<PeerWatcher> agent_;
};

}  // namespace

Result<std::unique_ptr<PeerWatcher>> watch_epoch(const Meeting& meeting, EpochWatch watch) {
  std::unique_ptr<PeerWatcher> peers;
  if (!watch.peers.empty()) {
    HORO_TRY(peers, watch_peers(meeting.board.value(), std::move(watch.peers),
                                {.host = meeting.identity.hostname,
                                 .release_timeout = watch.release_timeout}));
  }
  if (watch.agents_board < 0) return peers;
  HORO_TRY(auto bridge, bridge_to_agent({.agents_board = watch.agents_board,
                                         .board = meeting.board.value(),
                                         .there = watch.there,
                                         .here = meeting.identity.local_rank,
                                         .same_ranks = false,
                                         .notes = watch.notes}));
  return std::unique_ptr<PeerWatcher>(std::make_unique<Both>(std::move(peers), std::move(bridge)));
}

}  // namespace horo::runtime::bootstrap
