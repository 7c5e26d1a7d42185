// SPDX-License-Identifier: Apache-2.0
#include "base/board_header.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using horo::BoardHeader;
using horo::Errc;
using horo::LocalRank;
using horo::LossCause;
using horo::Poison;
using horo::Rank;

namespace {

/// A mapped board that is unmapped at the end.
struct MappedBoard {
  explicit MappedBoard(int local_size)
      : fd(*horo::make_board({.local_size = local_size, .nonce = 7})) {
    view = *horo::map_board_header(fd);
    header = &*view;
  }

  ~MappedBoard() {
    horo::unmap_board_header(view);
    close(fd);
  }

  int fd;
  horo::BoardView view;
  BoardHeader* header = nullptr;
};

}  // namespace

TEST_CASE("a fresh board is healthy and has its number of ranks") {
  const MappedBoard board(3);
  CHECK(board.header->local_size == 3);
  CHECK(board.header->nonce == 7);
  CHECK(horo::poison_of(*board.header).cause == LossCause::none);
}

TEST_CASE("the first poison is kept") {
  const MappedBoard board(2);
  const Poison first{.rank = Rank{5}, .cause = LossCause::signalled, .detail = 9};
  horo::poison_board(board.view, first, "node7");
  horo::poison_board(board.view, {.rank = Rank{6}, .cause = LossCause::exited, .detail = 1},
                     "node8");
  CHECK(horo::poison_of(*board.header) == first);
  CHECK(std::string(board.header->poison_host.data()) == "node7");
  CHECK(horo::describe(first) == "killed by signal 9 (SIGKILL)");
}

TEST_CASE("a poison that no rank caused has rank -1") {
  const MappedBoard board(1);
  horo::poison_board(board.view, {.rank = Rank{-1}, .cause = LossCause::aborted}, "");
  CHECK(horo::poison_of(*board.header).rank == Rank{-1});
}

TEST_CASE("a descriptor that is not a board is refused with its number") {
  char path[] = "/tmp/horo-test-XXXXXX";
  const int fd = mkstemp(path);
  unlink(path);
  CHECK(horo::map_board_header(fd).error().code == Errc::protocol);
  REQUIRE(ftruncate(fd, 1 << 16) == 0);
  CHECK(horo::map_board_header(fd).error().code == Errc::protocol);
  close(fd);
}

TEST_CASE("a poison wakes a waiter in another process") {
  const MappedBoard board(2);
  auto& slot = board.header->slot(LocalRank{1});
  const pid_t child = fork();
  if (child == 0) {
    horo::BellSleeper sleeper(slot.bell, horo::Sleeper::caller);
    if (horo::poison_of(*board.header).cause == LossCause::none)
      sleeper.sleep(std::chrono::seconds(30));
    _exit(horo::poison_of(*board.header).cause == LossCause::exited ? 0 : 1);
  }
  while (slot.bell.callers.load() == 0) sched_yield();
  horo::poison_board(board.view, {.rank = Rank{0}, .cause = LossCause::exited}, "here");
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a local size out of range is refused") {
  CHECK(horo::make_board({.local_size = 0}).error().code == Errc::invalid_argument);
  CHECK(horo::make_board({.local_size = horo::kMaxLocalRanks + 1}).error().code ==
        Errc::invalid_argument);
}

TEST_CASE("a rank that overwrites the number of ranks changes nothing for those that have mapped") {
  // The first page behind the header of two ranks is mapped too: bells there would be written.
  MappedBoard board(2);
  for (const std::uint32_t claimed : {0U, 1U, 0xffffffffU}) {
    board.header->local_size = claimed;
    const auto before = board.header->slot(LocalRank{1}).bell.rings.load();
    horo::ring_all(board.view);
    CHECK(board.header->slot(LocalRank{1}).bell.rings.load() == before + 1);
    CHECK(board.view.local_size() == 2);
  }
}

TEST_CASE("no process can shrink a board") {
  const MappedBoard board(2);
  CHECK(ftruncate(board.fd, 0) != 0);
  CHECK(horo::poison_of(*board.header).cause == LossCause::none);
  REQUIRE(horo::seal_board_size(board.fd));
  CHECK(ftruncate(board.fd, 1 << 20) != 0);
}

TEST_CASE("the newest notice stays, whatever the order in which notices are posted") {
  const MappedBoard board(2);
  CHECK(horo::notice_of(*board.header) == horo::Notice{});
  const horo::Notice second{.sequence = 2, .flags = horo::Notice::kRemoved | horo::Notice::kAdded};
  horo::post_notice(board.view, second);
  horo::post_notice(board.view, {.sequence = 1, .flags = horo::Notice::kRemoved});
  CHECK(horo::notice_of(*board.header) == second);
  const horo::Notice last{.sequence = horo::Notice::kMostSequence, .flags = horo::Notice::kAdded};
  horo::post_notice(board.view, last);
  CHECK(horo::notice_of(*board.header) == last);
}
