// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/peer_release.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

using namespace horo;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it

namespace {

struct Board {
  Board() : fd(*make_board({.local_size = 2, .nonce = 7})), view(*map_board_header(fd)) {}

  ~Board() {
    unmap_board_header(view);
    close(fd);
  }

  bool acknowledged() const { return view->slot(LocalRank{1}).poison_ack.load() != 0; }

  void poison() const {
    poison_board(view, {.rank = Rank{0}, .cause = LossCause::signalled, .detail = 9}, "here");
  }

  int fd;
  BoardView view;
};

}  // namespace

TEST_CASE("a rank has acknowledged a loss beforehand while its access is paused") {
  const Board board;
  PeerRelease release(*board.view, LocalRank{1});
  {
    const PeerRelease::Pause pause(release);
    CHECK(board.acknowledged());
  }
  CHECK_FALSE(board.acknowledged());
  CHECK_FALSE(release.ended());
}

TEST_CASE("a rank whose access was paused when another was lost does not get it back") {
  const Board board;
  PeerRelease release(*board.view, LocalRank{1});
  {
    const PeerRelease::Pause pause(release);
    board.poison();
  }
  CHECK(board.acknowledged());
  CHECK(release.ended());
  { const PeerRelease::Pause pause(release); }
  CHECK(board.acknowledged());
}
