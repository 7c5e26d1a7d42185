// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/local/agent_bridge.hpp"

#include <chrono>
#include <thread>

#include <catch2/catch.hpp>

#include "base/board_header.hpp"

using namespace horo;                      // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::bootstrap;  // NOLINT(google-build-using-namespace): a test of it

namespace {

struct Board {
  Board() : fd(*make_board({.local_size = 2, .nonce = 7})), view(*map_board_header(fd.value())) {}

  ~Board() { unmap_board_header(view); }

  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  bool acknowledged() const { return view->slot(LocalRank{1}).poison_ack.load() != 0; }

  void acknowledge() const { view->slot(LocalRank{1}).poison_ack.store(1); }

  UniqueFd fd;
  BoardView view;
};

std::unique_ptr<PeerWatcher> bridge(const Board& agents, const Board& ours) {
  auto made = bridge_to_agent({.agents_board = agents.fd.value(),
                               .board = ours.fd.value(),
                               .there = LocalRank{1},
                               .here = LocalRank{1}});
  REQUIRE(made);
  return std::move(*made);
}

}  // namespace

TEST_CASE("in each epoch the agent waits for an acknowledgement of that epoch") {
  const Board agents;
  const Board second;
  bridge(agents, second).reset();
  CHECK(agents.acknowledged());  // A rank between two epochs has nothing to acknowledge.

  const Board third;
  const auto watcher = bridge(agents, third);
  CHECK_FALSE(agents.acknowledged());
  poison_board(agents.view, {.rank = Rank{0}, .cause = LossCause::signalled, .detail = 9}, "here");
  while (poison_of(*third.view).cause == LossCause::none) std::this_thread::yield();
  CHECK_FALSE(agents.acknowledged());
  third.acknowledge();
  while (!agents.acknowledged()) std::this_thread::yield();
}
