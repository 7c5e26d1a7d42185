// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/local/agent_bridge.hpp"

#include <csignal>
#include <pthread.h>
#include <string_view>
#include <thread>

#include "base/board_header.hpp"
#include "base/signals_blocked.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr Duration kAckLook = std::chrono::milliseconds(20);

class AgentBridge final : public PeerWatcher {
 public:
  AgentBridge(const BoardView& agents, const BoardView& board, const BridgeEnds& ends)
      : agents_(agents),
        board_(board),
        there_(ends.there),
        here_(ends.here),
        same_ranks_(ends.same_ranks),
        notes_(ends.notes) {
    mine().poison_ack.store(0, std::memory_order_seq_cst);  // An earlier bridge may have set it.
    mine().state.store(RankState::attached, std::memory_order_seq_cst);
    thread_ = start_quiet_thread([this] { run(); });
  }

  AgentBridge(const AgentBridge&) = delete;
  AgentBridge& operator=(const AgentBridge&) = delete;

  ~AgentBridge() override {
    stopping_.store(true, std::memory_order_seq_cst);
    mine().bell.ring_all();
    thread_.join();
    mine().poison_ack.store(1, std::memory_order_seq_cst);
    mine().state.store(RankState::detached, std::memory_order_seq_cst);
    unmap_board_header(agents_);
    unmap_board_header(board_);
  }

  void note_loss(Rank lost) override {
    if (notes_ == LossNotes::kept) return;
    mine().heard.store(static_cast<std::uint32_t>(lost.value()) + 1, std::memory_order_seq_cst);
  }

 private:
  RankSlot& mine() { return agents_->slot(there_); }

  bool stopping() const { return stopping_.load(std::memory_order_seq_cst); }

  void run() {
    pthread_setname_np(pthread_self(), "horo-watch");
    for (;;) {
      BellSleeper sleeper(mine().bell, Sleeper::runtime_thread);
      if (stopping()) return;
      if (poison_of(*agents_).cause != LossCause::none) break;
      sleeper.sleep(Duration::max());
    }
    const auto& host = agents_->poison_host;
    const std::string_view text(host.data(), host.size());
    copy_dead();
    poison_board(board_, poison_of(*agents_), text.substr(0, text.find('\0')));
    // The agent kills a rank that does not acknowledge the poison. Copy this rank's acknowledgement
    // from the board in use, and mark peers that end later as dead, so that no rank waits for them.
    auto& slot = board_->slot(here_);
    while (!stopping()) {
      if (copy_dead()) ring_all(board_);
      if (slot.poison_ack.load(std::memory_order_seq_cst) != 0)
        mine().poison_ack.store(1, std::memory_order_seq_cst);
      BellSleeper sleeper(mine().bell, Sleeper::runtime_thread);
      if (!stopping()) sleeper.sleep(kAckLook);
    }
  }

  /// Marks the ranks that the agent has seen end as dead. True if one is new.
  bool copy_dead() {
    bool any = false;
    if (!same_ranks_) return any;
    for (int r = 0; r < board_.local_size(); ++r) {
      const LocalRank rank{r};
      if (agents_->slot(rank).state.load(std::memory_order_seq_cst) != RankState::dead) continue;
      auto& state = board_->slot(rank).state;
      auto last = state.load(std::memory_order_seq_cst);
      while (last != RankState::detached && last != RankState::dead) {
        if (!state.compare_exchange_weak(last, RankState::dead, std::memory_order_seq_cst))
          continue;
        any = true;
        break;
      }
    }
    return any;
  }

  const BoardView agents_;
  const BoardView board_;
  const LocalRank there_;
  const LocalRank here_;
  const bool same_ranks_;
  const LossNotes notes_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<PeerWatcher>> bridge_to_agent(const BridgeEnds& ends) {
  HORO_TRY(const auto agents, map_board_header(ends.agents_board));
  auto ours = map_board_header(ends.board);
  if (!ours) {
    unmap_board_header(agents);
    return Failure(std::move(ours).error());
  }
  const bool fits =
      ends.there.value() < agents.local_size() && ends.here.value() < ours->local_size();
  if (!fits || (ends.same_ranks && ours->local_size() != agents.local_size())) {
    unmap_board_header(agents);
    unmap_board_header(*ours);
    return fail(Errc::protocol, "the agent's board and that of this epoch are for different ranks");
  }
  return std::unique_ptr<PeerWatcher>(std::make_unique<AgentBridge>(agents, *ours, ends));
}

}  // namespace horo::runtime::bootstrap
