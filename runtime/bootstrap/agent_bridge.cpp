// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/agent_bridge.hpp"

#include <csignal>
#include <pthread.h>
#include <string_view>
#include <thread>

#include "base/board_header.hpp"
#include "base/signals_blocked.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr Duration kAckLook = std::chrono::milliseconds(20);

class AgentBridge final : public Vigil {
 public:
  AgentBridge(BoardHeader* agents, BoardHeader* board, const BridgeEnds& ends)
      : agents_(agents),
        board_(board),
        there_(ends.there),
        here_(ends.here),
        same_ranks_(ends.same_ranks) {
    mine().state.store(RankState::attached, std::memory_order_seq_cst);
    thread_ = start_quiet_thread([this] { run(); });
  }

  AgentBridge(const AgentBridge&) = delete;
  AgentBridge& operator=(const AgentBridge&) = delete;

  ~AgentBridge() override {
    stopping_.store(true, std::memory_order_seq_cst);
    mine().bell.fetch_add(1, std::memory_order_seq_cst);
    futex::wake(mine().bell);
    thread_.join();
    mine().poison_ack.store(1, std::memory_order_seq_cst);
    mine().state.store(RankState::detached, std::memory_order_seq_cst);
    unmap_board_header(agents_);
    unmap_board_header(board_);
  }

  void tell(Rank lost) override {
    mine().heard.store(static_cast<std::uint32_t>(lost.value()) + 1, std::memory_order_seq_cst);
  }

 private:
  RankSlot& mine() { return agents_->slot(there_); }

  bool stopping() const { return stopping_.load(std::memory_order_seq_cst); }

  void run() {
    pthread_setname_np(pthread_self(), "horo-watch");
    for (;;) {
      const auto seen = mine().bell.load(std::memory_order_seq_cst);
      if (stopping()) return;
      if (poison_of(*agents_).cause != LossCause::none) break;
      futex::wait(mine().bell, seen, Duration::max());
    }
    const auto& host = agents_->poison_host;
    const std::string_view text(host.data(), host.size());
    bury();
    poison_board(*board_, poison_of(*agents_), text.substr(0, text.find('\0')));
    // The agent kills a rank that does not let go; ours has when it says so on the board in use. A
    // peer that the agent buries later must not be waited for either.
    auto& slot = board_->slot(here_);
    while (!stopping()) {
      if (bury()) ring_all(*board_);
      if (slot.poison_ack.load(std::memory_order_seq_cst) != 0)
        mine().poison_ack.store(1, std::memory_order_seq_cst);
      const auto seen = mine().bell.load(std::memory_order_seq_cst);
      if (!stopping()) futex::wait(mine().bell, seen, kAckLook);
    }
  }

  /// Ranks that the agent has seen end. True if one is new.
  bool bury() {
    bool any = false;
    if (!same_ranks_) return any;
    for (std::uint32_t r = 0; r < board_->local_size; ++r) {
      const LocalRank rank{static_cast<int>(r)};
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

  BoardHeader* const agents_;
  BoardHeader* const board_;
  const LocalRank there_;
  const LocalRank here_;
  const bool same_ranks_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Vigil>> bridge_to_agent(const BridgeEnds& ends) {
  HORO_TRY(BoardHeader* const agents, map_board_header(ends.agents_board));
  auto ours = map_board_header(ends.board);
  if (!ours) {
    unmap_board_header(agents);
    return Failure(std::move(ours).error());
  }
  const bool fits =
      ends.there.index() < agents->local_size && ends.here.index() < (*ours)->local_size;
  if (!fits || (ends.same_ranks && (*ours)->local_size != agents->local_size)) {
    unmap_board_header(agents);
    unmap_board_header(*ours);
    return fail(Errc::protocol, "the agent's board and that of this epoch are for different ranks");
  }
  return std::unique_ptr<Vigil>(std::make_unique<AgentBridge>(agents, *ours, ends));
}

}  // namespace horo::runtime::bootstrap
